#include "plan/programs.h"

#include <algorithm>

#include "base/error.h"
#include "models/model.h"

namespace sextant {

namespace {

void refuse_unsupported_mesh(const RunConfig& run) {
  struct Wish {
    std::string_view key;
    bool asked;
    std::string_view what;
  };
  const MeshSection& m = run.mesh;
  std::vector<Complaint> complaints;
  for (const Wish& wish : {Wish{"mesh.pp", m.pp > 1, "pipeline parallelism"}, Wish{"mesh.cp", m.cp > 1, "context parallelism"},
                           Wish{"mesh.ep", m.ep > 1, "expert parallelism"}, Wish{"mesh.zero", m.zero > 0, "ZeRO"},
                           Wish{"mesh.sequence_parallel", m.sequence_parallel, "sequence parallelism"}}) {
    if (wish.asked)
      complaints.push_back({.place = run.place_of(wish.key), .got = fmt::format("{} is not supported yet", wish.what),
                            .expected = "dp and tp only"});
  }
  if (!complaints.empty()) throw UserError(std::move(complaints));
}

RecomputeMode recompute_mode(const RunConfig& run) {
  if (run.train.recompute == "full") return RecomputeMode::full;
  return run.train.recompute == "selective" ? RecomputeMode::selective : RecomputeMode::none;
}

AdamW optimizer_of(const RunConfig& run) {
  const OptimizerSection& o = run.optimizer;
  return {.beta1 = o.beta1, .beta2 = o.beta2, .eps = o.eps, .weight_decay = o.weight_decay, .clip = o.clip};
}

// Programs of one model agree on where the weights are, or evaluation would read something else.
void require_same_weights(const Program& a, const Program& b) {
  for (const Value& value : a.values) {
    if (value.kind != ValueKind::parameter) continue;
    const Value& other = b.at(value.path);
    BUG_IF(a.buffers[static_cast<size_t>(value.buffer)].offset != b.buffers[static_cast<size_t>(other.buffer)].offset,
           "{} lies elsewhere in {}", value.path, b.name);
  }
}

}  // namespace

bool has_validation(const RunConfig& run) {
  return run.train.eval_every > 0 && (!run.data.validation.empty() || run.data.validation_fraction > 0);
}

RunShape run_shape(const RunConfig& run, const ModelSpec& spec) {
  refuse_unsupported_mesh(run);
  const MeshSection& m = run.mesh;
  Mesh mesh{{{"pp", 1}, {"dp", static_cast<int>(m.dp)}, {"cp", 1}, {"tp", static_cast<int>(m.tp)}}};
  return {spec, std::move(mesh), run.batch.sequences / (run.batch.microbatch * m.dp)};
}

RunPrograms build_programs(const RunConfig& run, const RunShape& shape, const Target& target,
                           const decltype(LowerOptions::observe)& observe) {
  // A Graph is one microbatch over all data-parallel ranks.
  Use use{.batch = run.batch.microbatch * run.mesh.dp, .seq = run.batch.seq, .z_loss = run.optimizer.z_loss};
  LowerOptions options{.train = optimizer_of(run), .observe = observe};
  options.plan = {.recompute = recompute_mode(run), .microbatches = static_cast<int>(shape.microbatches)};
  RunPrograms programs{.train = lower(build_model(shape.spec, use, shape.mesh), target, options)};
  programs.arena_bytes = programs.train.arena_bytes;
  if (has_validation(run)) {
    use.z_loss = 0;  // a regulariser of training, not part of what is measured
    programs.evaluate = lower(build_model(shape.spec, use, shape.mesh), target,
                              {.transient_from = programs.train.persistent_bytes});
    require_same_weights(programs.train, *programs.evaluate);
    programs.arena_bytes = std::max(programs.arena_bytes, programs.evaluate->arena_bytes);
  }
  return programs;
}

}  // namespace sextant
