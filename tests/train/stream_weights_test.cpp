// Weights of blocks that are streamed from the host: which they are, when they come and go, and what that makes of the
// memory and the step of Llama 3.1 8B. That no number changes is offload_test.cpp's.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "checkout.h"
#include "config/load.h"
#include "cost/machine_file.h"
#include "ir/lane.h"
#include "mesh_cases.h"
#include "plan/run_plan.h"
#include "run/resolve_spec.h"
#include "scratch_run.h"
#include "targets/cuda/cuda_target.h"

namespace sextant {
namespace {

double in_gib(int64_t bytes) {
  return static_cast<double>(bytes) / (1 << 30);
}

// Of the GPU in bf16.
Program streamed_program(const std::vector<std::string>& more) {
  ScratchRun scratch("stream-weights");
  std::vector<std::string> settings = common_settings();
  for (const char* own :
       {"batch.sequences=4", "offload.optimizer=true", "offload.weights=true", "offload.working_weights=true"})
    settings.emplace_back(own);
  settings.insert(settings.end(), more.begin(), more.end());
  RunConfig run = scratch.config("tiny-llama.toml", settings);
  LoweredRun lowered = lower_run(run, resolve_spec(run), cuda_target(Determinism::repeatable), Checks::each_pass);
  return std::move(lowered.programs.train[0]);
}

bool comes_from_host(const Program& program, const Op& op) {
  return op.def->between_spaces && program[op.inputs[0]].kind == ValueKind::parameter &&
         program[op.inputs[0]].space == MemorySpace::host;
}

TEST(StreamWeights, LargeMatricesOfBlocksAreOnTheHostAndTheRestIsNot) {
  Program program = streamed_program({"model.layers=3"});
  std::set<std::string> away;
  for (const Value& value : program.values)
    if (value.kind == ValueKind::parameter && value.space == MemorySpace::host) away.insert(value.path);
  std::set<std::string> expected;
  for (int layer = 0; layer < 3; ++layer)
    for (const char* name : {"attn.qkv", "mlp.gate_up", "mlp.down"})  // attn.out is a twelfth
      expected.insert(fmt::format("layers.{}.{}.weight", layer, name));
  EXPECT_EQ(away, expected);
}

// Once in each region that reads it, in every microbatch, beside the block before the one that does.
TEST(StreamWeights, ComeOneBlockAhead) {
  for (const char* mesh : {"mesh.dp=1", "mesh.dp=2"}) {
    Program program = streamed_program({"model.layers=4", "train.recompute=full", mesh});
    for (const Region& region : program.regions) {
      std::map<ValueId, size_t> copied;
      for (size_t i = 0; i < region.ops.size(); ++i) {
        const Op& op = region.ops[i];
        if (!comes_from_host(program, op)) continue;
        SCOPED_TRACE(op.path);
        EXPECT_NE(region.kind, RegionKind::update);
        EXPECT_TRUE(on_comm_lane(op));
        EXPECT_FALSE(once_per_step(op));
        EXPECT_TRUE(copied.emplace(op.inputs[0], i).second);
        size_t reader = i;
        while (std::ranges::count(region.ops[reader].inputs, op.outputs[0]) == 0) ++reader;
        std::set<int> between;
        for (size_t k = i; k < reader; ++k)
          if (!on_comm_lane(region.ops[k]) && region.ops[k].block != region.ops[reader].block)
            between.insert(region.ops[k].block);
        EXPECT_EQ(between.size(), 1u);
      }
      EXPECT_EQ(copied.size(), region.kind == RegionKind::update ? 0u : 12u);
    }
  }
}

// More blocks need no more of the device but their gradients and what stays of each.
TEST(StreamWeights, OfAFewBlocksAreOnTheDeviceAtOnce) {
  auto bytes = [](const Program& program) {
    int64_t weights = 0;
    for (const Buffer& buffer : program.buffers)
      if (buffer.kind == BufferClass::weights && buffer.space == MemorySpace::device) weights += buffer.bytes;
    return std::pair(weights, program.arena_bytes - program.persistent_bytes);
  };
  auto [six, six_passing] =
      bytes(streamed_program({"model.layers=6", "train.recompute=full", "offload.activations=block"}));
  auto [ten, ten_passing] =
      bytes(streamed_program({"model.layers=10", "train.recompute=full", "offload.activations=block"}));
  EXPECT_EQ(ten - six, 4 * (2 * 256 + 64 * 64 * 2));  // two norms, in rows of 256 bytes, and attn.out
  EXPECT_EQ(ten_passing, six_passing);
}

// The host has no room for all gradients beside the weights: few of them are there at once.
TEST(StreamWeights, GradientsDoNotGatherOnTheHost) {
  Program program = streamed_program({"model.layers=10"});
  int64_t gradients = 0, largest = 0;
  for (const Value& value : program.values)
    if (value.kind == ValueKind::gradient)
      gradients += value.local_bytes().n, largest = std::max(largest, value.local_bytes().n);
  EXPECT_LT(program.host_arena.all - program.host_arena.persistent, gradients / 3);
  EXPECT_GE(program.host_arena.all - program.host_arena.persistent, largest);
}

// Ops that measure weights during the update, and ops that quantize them to fp8 once a step, find them on the device.
TEST(StreamWeights, AreMeasuredAndQuantizedAsOthers) {
  ScratchRun scratch("stream-measured");
  const std::vector<std::string> streamed{"offload.optimizer=true", "offload.working_weights=true"};
  struct Kind {
    const char* name;
    std::vector<std::string> settings;
  };
  for (const auto& [name, settings] : {Kind{"measured", {"log.tensor_stats_every=1", "mesh.dp=2", "mesh.zero=1"}},
                                       Kind{"fp8", {"train.precision=fp8"}}}) {
    SCOPED_TRACE(name);
    std::vector<std::string> plain = common_settings();
    for (const char* own : {"train.steps=3", "train.eval_every=3", "batch.sequences=4"}) plain.emplace_back(own);
    plain.insert(plain.end(), settings.begin(), settings.end());
    std::vector<std::string> on = plain;
    on.insert(on.end(), streamed.begin(), streamed.end());
    std::string with = fmt::format("{}-streamed", name);
    scratch.run(name, plain);
    scratch.run(with, on);
    EXPECT_EQ(scratch.losses(with), scratch.losses(name));
    EXPECT_EQ(scratch.metric(with, "validation_loss"), scratch.metric(name, "validation_loss"));
    for (const char* field : {"update_ratio", "weight_rms", "weight_max"}) {
      EXPECT_EQ(scratch.metric(name, field).empty(), name != std::string_view("measured"));
      EXPECT_EQ(scratch.metric(with, field), scratch.metric(name, field)) << field;
    }
  }
}

// docs/offload.md: in 40 GiB of an H200 and 128 GiB of its host, at 0.6 of the speed of the run without.
TEST(StreamWeights, Llama8BTrainsIn40GiB) {
  Machine h200 = load_machine("h200");
  SoftwareProfile profile;
  auto plan_with = [&](const std::vector<std::string>& overrides) {
    RunConfig run =
        load_config(std::filesystem::path(checkout::kSources) / "configs/plan/llama3.1-8b-offload.toml", overrides);
    LoweredRun lowered = lower_run(run, resolve_spec(run), cuda_target(Determinism::fast));
    return make_plan({.run = run, .lowered = lowered, .machine = &h200, .profile = &profile});
  };
  RunPlan with = plan_with({});
  RunPlan without = plan_with({"offload.optimizer=false", "offload.weights=false", "offload.working_weights=false"});
  EXPECT_LE(in_gib(with.peak_bytes), 40);
  EXPECT_LE(in_gib(with.host_bytes), 112);
  ASSERT_TRUE(without.fits());
  EXPECT_GE(without.step->seconds / with.step->seconds, 0.6);
}

}  // namespace
}  // namespace sextant
