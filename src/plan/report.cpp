#include "plan/report.h"

#include "base/error.h"
#include "models/model.h"
#include "plan/stage_flops.h"
#include "plan/traffic.h"

namespace sextant {

namespace {

Flops step_flops(const Program& program, int64_t microbatches) {
  Flops per_microbatch = region_flops(program, RegionKind::forward) + region_flops(program, RegionKind::backward) +
                         region_flops(program, RegionKind::weight);
  return Flops{per_microbatch.n * static_cast<double>(microbatches)} + region_flops(program, RegionKind::update);
}

int first_rank_of_stage(const Mesh& mesh, int stage_rank) {
  for (int rank = 0; rank < mesh.world_size(); ++rank)
    if (stage_rank_of(mesh, rank) == stage_rank) return rank;
  BUG("no rank {} on the pipeline axis", stage_rank);
}

// Weights and optimizer state, copied when a checkpoint is due.
Bytes snapshot_of(const RunConfig& run, const Program& program) {
  Bytes bytes;
  if (!run.checkpoint.background || run.checkpoint.every == 0) return bytes;
  for (const Value& value : program.values)
    if (value.kind == ValueKind::parameter || value.kind == ValueKind::state) bytes += value.local_bytes();
  return bytes;
}

struct Row {
  const char* key;    // in JSON
  const char* title;  // on screen
  Bytes bytes;
};

std::vector<Row> memory_rows(const PlanReport& r) {
  return {{"weights", r.halved ? "weights (bf16)" : "weights (f32)", r.train.weights},
          {"gradients", "gradients (f32)", r.train.gradients},
          {"optimizer", r.halved ? "optimizer (moments; weights to f32)" : "optimizer (AdamW, two f32 moments)", r.train.optimizer},
          {"saved", "activations kept for backward", r.train.saved},
          {"working", r.train.gradients.n > 0 ? "working memory" : "working memory, gradients among it", r.train.working},
          {"evaluation", "more for evaluation", r.evaluation_extra}};
}

}  // namespace

PlanReport plan_report(const RunConfig& run, const RunShape& shape, const Target& target) {
  RunPrograms programs = build_programs(run, shape, target);
  PlanReport report{.architecture = shape.spec.architecture,
                    .parameters = parameter_count(build_model(shape.spec, {.seq = 1}, single_rank_mesh())),
                    .mesh = shape.mesh.text(),
                    .ranks = shape.mesh.world_size(),
                    .microbatches = shape.pipeline.shape.microbatches,
                    .tokens_per_step = run.batch.sequences * run.batch.seq,
                    .train = {}};
  // Of the pipeline ranks, the one that needs most memory.
  for (size_t i = 0; i < programs.train.size(); ++i) {
    int64_t arena = programs.arena_bytes(static_cast<int>(i));
    report.stage_arenas.push_back({arena});
    if (arena <= report.arena.n) continue;
    report.arena = {arena};
    report.train = memory_use(programs.train[i]);
    for (const Value& value : programs.train[i].values)
      report.halved = report.halved || (value.kind == ValueKind::parameter && value.dtype == DType::bf16);
    report.snapshot = snapshot_of(run, programs.train[i]);
    report.sent = bytes_to_send(programs.train[i], first_rank_of_stage(shape.mesh, static_cast<int>(i)));
    report.flops_per_step = step_flops(programs.train[i], report.microbatches);
  }
  report.evaluation_extra = {report.arena.n - report.train.total.n};
  return report;
}

std::string report_text(const PlanReport& r) {
  std::string out = fmt::format("model       {}, {} parameters\n", r.architecture, human_count(r.parameters));
  out += fmt::format("mesh        {} ({} rank{})\n", r.mesh, r.ranks, r.ranks == 1 ? "" : "s");
  out += fmt::format("step        {} tokens in {} microbatch{} per rank, {:.3g} TFLOP executed per rank (attention causal)\n\n",
                     human_count(r.tokens_per_step), r.microbatches, r.microbatches == 1 ? "" : "es", r.flops_per_step.n / 1e12);
  out += fmt::format("{:<37}{:>17}\n", r.stage_arenas.size() > 1 ? "memory of a rank of the largest stage" : "memory of one rank",
                     "bytes");
  for (const Row& row : memory_rows(r))
    if (row.bytes.n > 0) out += fmt::format("  {:<34} {:>17}  {:>10}\n", row.title, human_count(row.bytes.n), human(row.bytes));
  out += fmt::format("  {:<34} {:>17}  {:>10}\n", "in all, allocated at the start", human_count(r.arena.n), human(r.arena));
  if (r.snapshot.n > 0)
    out += fmt::format("  {:<34} {:>17}  {:>10}\n", "and a copy, for saving", human_count(r.snapshot.n), human(r.snapshot));
  if (!r.sent.empty()) out += fmt::format("\n{:<37}{:>17}\n", "sent by such a rank in a step, along", "bytes");
  for (const auto& [axes, bytes] : r.sent)
    out += fmt::format("  {:<34} {:>17}  {:>10}\n", axes, human_count(bytes), human(Bytes{bytes}));
  if (r.stage_arenas.size() > 1) out += "\nmemory by stage of the pipeline\n";
  for (size_t i = 0; r.stage_arenas.size() > 1 && i < r.stage_arenas.size(); ++i)
    out += fmt::format("  {:<34} {:>17}  {:>10}\n", fmt::format("stage {}", i), human_count(r.stage_arenas[i].n), human(r.stage_arenas[i]));
  return out;
}

std::string report_json(const PlanReport& r) {
  std::string memory;
  for (const Row& row : memory_rows(r)) memory += fmt::format("\"{}\": {}, ", row.key, row.bytes.n);
  std::string sent;
  for (const auto& [axes, bytes] : r.sent) sent += fmt::format("{}\"{}\": {}", sent.empty() ? "" : ", ", axes, bytes);
  std::string stages;
  for (const Bytes& arena : r.stage_arenas) stages += fmt::format("{}{}", stages.empty() ? "" : ", ", arena.n);
  return fmt::format(
      "{{\"architecture\": \"{}\", \"parameters\": {}, \"mesh\": \"{}\", \"ranks\": {}, \"microbatches\": {}, "
      "\"tokens_per_step\": {}, \"flops_per_step_and_rank\": {:.0f}, \"memory_bytes_per_rank\": {{{}\"total\": {}}}, "
      "\"memory_bytes_by_stage\": [{}], \"snapshot_bytes_per_rank\": {}, "
      "\"sent_bytes_per_rank_and_step\": {{{}}}}}\n",
      r.architecture, r.parameters, r.mesh, r.ranks, r.microbatches, r.tokens_per_step, r.flops_per_step.n, memory, r.arena.n,
      stages, r.snapshot.n, sent);
}

}  // namespace sextant
