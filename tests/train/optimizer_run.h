// Steps of a small model on a mesh of threads with any optimizer, from a Hugging Face directory or from a checkpoint
// of such steps to the next one.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <vector>

#include "base/files.h"
#include "ckpt/model_weights.h"
#include "ckpt/slices.h"
#include "comm/run_ranks.h"
#include "exec/cpu/cpu_executor.h"
#include "models/hf_config.h"
#include "models/model.h"
#include "passes/lower.h"
#include "passes/scale_losses.h"
#include "targets/cpu/cpu_target.h"
#include "train/save/run_checkpoint.h"

namespace sextant {

struct OptimizerRun {
  std::filesystem::path model;  // config.json, and weights where nothing is resumed
  Mesh mesh;
  Parallel parallel = {};
  Optimizer optimizer = {};
  float lr = 0;
  int64_t rows = 0, seq = 0;
  std::vector<int32_t> tokens, targets;  // [rows, seq]; a negative target does not count
  std::filesystem::path from = {};       // a checkpoint to go on from
  int64_t last_step = 0;                 // counted from the model's first
  DType dtype = DType::f32;              // computed in
  std::optional<LossScaling> loss_scaling = {};
  std::vector<double> factors = {};            // by which the loss of each step is multiplied besides; 1 where none is
  std::vector<int32_t> step_numbers = {};      // of each step, for the optimizer; counted from 1 where none are given
  std::vector<double>* used_scales = nullptr;  // filled with the loss scale of each step
};

// Writes the rank's part of a feed.
inline void write_feed(Bound& bound, std::string_view path, const std::vector<int32_t>& whole, int64_t seq) {
  const Value& value = bound.program().at(path);
  std::vector<int32_t> part(static_cast<size_t>(value.local.count()));
  for (const Piece& piece : held_pieces(bound, value))
    for (int64_t r = 0; r < piece.rows; ++r)
      for (int64_t c = 0; c < piece.columns; ++c)
        part[static_cast<size_t>(piece.at + r * piece.stride + c)] =
            whole[static_cast<size_t>((piece.row + r) * seq + piece.column + c)];
  bound.write(value, std::as_bytes(std::span(part)));
}

// Whether this rank's number is one of those that add up to the loss.
inline bool counts_in_loss(const Bound& bound) {
  const Program& program = bound.program();
  Coordinate at = coordinate_of(program.mesh, bound.rank());
  for (int axis = 0; axis < program.mesh.axis_count(); ++axis)
    if (program.at("loss").layout.at(axis) != kPartial && at[static_cast<size_t>(axis)] != 0) return false;
  return true;
}

// Runs up to the last step and saves a checkpoint in `out`; the mean losses before each step.
inline std::vector<double> run_and_save(const OptimizerRun& run, const std::filesystem::path& out) {
  ModelSpec spec = spec_from_hf_config(read_file(run.model / "config.json"), "config.json");
  LowerOptions options{.plan = {.zero = run.parallel.zero}, .train = run.optimizer, .loss_scaling = run.loss_scaling};
  Use use{.batch = run.rows, .seq = run.seq, .dtype = run.dtype, .parallel = run.parallel};
  Program program = lower(build_model(spec, use, run.mesh), cpu_target(1), options);
  int64_t first = run.from.empty() ? 0 : read_run_state(run.from).step;
  auto counted = static_cast<double>(std::ranges::count_if(run.targets, [](int32_t t) { return t >= 0; }));
  const auto steps = static_cast<size_t>(run.last_step - first);
  int ranks = run.mesh.world_size();
  std::vector<std::vector<double>> parts(static_cast<size_t>(ranks), std::vector<double>(steps));
  ThreadHub hub(ranks, std::chrono::seconds(60));
  std::vector<RankEnd> ends = run_ranks(hub, ranks, [&](Transport& transport) {
    auto executor = make_cpu_executor(1, {transport.rank(), ranks == 1 ? nullptr : &transport});
    auto arena = executor->allocate(program.arena_bytes);
    auto bound = executor->bind(program, *arena);
    if (run.from.empty())
      load_weights(*bound, spec, WeightsReader(run.model));
    else
      load_run_checkpoint(run.from, *bound, spec, run.optimizer);
    write_feed(*bound, "tokens", run.tokens, run.seq);
    write_feed(*bound, "targets", run.targets, run.seq);
    write_value(*bound, program.at("lr"), run.lr);
    for (int64_t step = first; step < run.last_step; ++step) {
      double factor = run.factors.empty() ? 1 : run.factors[static_cast<size_t>(step)];
      write_value(*bound, program.at("loss_scale"), static_cast<float>(factor / counted));
      int32_t number =
          run.step_numbers.empty() ? static_cast<int32_t>(step + 1) : run.step_numbers[static_cast<size_t>(step)];
      if (program.find("step")) write_value(*bound, program.at("step"), number);
      run_schedule(*bound);
      if (run.used_scales && transport.rank() == 0)
        run.used_scales->push_back(static_cast<double>(read_value<float>(*bound, program.at(kUsedLossScalePath))));
      if (!counts_in_loss(*bound)) continue;
      parts[static_cast<size_t>(transport.rank())][static_cast<size_t>(step - first)] =
          static_cast<double>(read_value<float>(*bound, program.at("loss"))) / counted;
    }
    HostGroup group = ranks == 1 ? HostGroup() : HostGroup(transport, 77);
    ModelFiles files;
    RunState state{.step = run.last_step, .samples = run.last_step, .tokens = run.last_step * run.seq, .identity = {}};
    std::string failure = save_run_checkpoint(out, {*bound, spec, run.optimizer, nullptr, files, state}, group);
    if (!failure.empty()) throw RunError(out.string(), failure);
  });
  for (const RankEnd& end : ends)
    if (!end.error.empty() && !end.is_echo) ADD_FAILURE() << run.mesh.text() << ": " << end.error;
  std::vector<double> losses(steps);
  for (const std::vector<double>& part : parts)  // rank by rank: the same bits whoever was first
    for (size_t step = 0; step < steps; ++step) losses[step] += part[step];
  return losses;
}

}  // namespace sextant
