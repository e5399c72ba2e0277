// Shared code of the tests of worked cases: presets and plain shapes as models, layouts as runs, and the flops of a
// Program by part. The figures they are compared with are closed forms and printed results of other people's
// calculators.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "base/error.h"
#include "config/load.h"
#include "cost/planned_target.h"
#include "models/model.h"
#include "models/presets.h"
#include "passes/lower.h"
#include "passes/memory.h"
#include "plan/run_plan.h"

namespace sextant {

inline constexpr double kGiB = 1024.0 * 1024 * 1024;

struct RunLayout {
  int64_t dp = 1, tp = 1, pp = 1, zero = 0;
  int64_t microbatch = 1, microbatches = 1;  // sequences in one, and how many a rank has in a step
  int64_t seq = 0;
  std::string recompute = "none";
  bool sequence_parallel = true;  // with tp > 1
  std::string precision = "auto";
};

inline ModelSpec spec_of(const char* preset) {
  const Preset* found = find_preset(preset);
  if (!found) throw std::runtime_error(preset);
  return found->spec;
}

inline ModelSpec with_vocab(ModelSpec spec, int64_t vocab) {
  spec.vocab = vocab;
  return spec;
}

inline ModelSpec untied(ModelSpec spec) {
  spec.tied_head = false;
  return spec;
}

// A profile of plain blocks (gpt2, neox, llama) by its sizes, with an MLP of `ffn` and as many key heads as query
// heads.
struct PlainShape {
  int64_t layers, hidden, heads, vocab, ffn;
};
inline ModelSpec plain_model(const char* architecture, const PlainShape& s) {
  ModelSpec spec{.architecture = architecture,
                 .layers = s.layers,
                 .hidden = s.hidden,
                 .heads = s.heads,
                 .kv_heads = s.heads,
                 .head_dim = s.hidden / s.heads,
                 .ffn = s.ffn,
                 .vocab = s.vocab,
                 .max_seq = 2048};
  spec.rotary_fraction = find_model(architecture)->defaults.rotary_fraction;
  return spec;
}

inline RunConfig run_of(const RunLayout& layout) {
  RunConfig run;
  run.mesh.dp = layout.dp, run.mesh.tp = layout.tp, run.mesh.pp = layout.pp, run.mesh.zero = layout.zero;
  run.mesh.sequence_parallel = layout.tp > 1 && layout.sequence_parallel;
  run.batch = {.sequences = layout.dp * layout.microbatch * layout.microbatches,
               .microbatch = layout.microbatch,
               .seq = layout.seq};
  run.train.recompute = *value_of_word<RecomputeMode>(layout.recompute);
  run.train.precision = *value_of_word<Precision>(layout.precision);
  run.train.eval_every = 0;
  return run;
}

inline LoweredRun lowered_of(ModelSpec spec, const RunLayout& layout) {
  if (spec.max_seq < layout.seq) spec.max_seq = layout.seq;
  return lower_run(run_of(layout), spec, planned_target(own_profile()), Checks::none);  // others check Programs
}

inline RunPlan plan_of(const ModelSpec& spec, const RunLayout& layout) {
  LoweredRun lowered = lowered_of(spec, layout);
  return make_plan({.run = run_of(layout), .lowered = lowered});
}

// The Program that generates: `seq` new positions of one sequence, in a cache of `context`.
inline Program generation_of(ModelSpec spec, int tp, int64_t seq, int64_t context) {
  if (spec.max_seq < context) spec.max_seq = context;
  Mesh mesh{{{"pp", 1}, {"dp", 1}, {"cp", 1}, {"tp", tp}}};
  Use use{.kind = Use::Kind::generate, .seq = seq, .cache_positions = context, .dtype = DType::bf16};
  return lower(build_model(spec, use, mesh), planned_target(own_profile()), {});
}

inline int64_t parameters_of(const ModelSpec& spec) {
  return parameter_count(build_model(spec, {.seq = 1}, single_rank_mesh()));
}

// Figures printed in powers of 1000 with two decimals.
inline double half_a_digit(double printed) {
  return 0.0051 * std::pow(1000, std::floor(std::log10(printed) / 3));
}
inline void expect_printed(double value, double printed, const std::string& what) {
  EXPECT_NEAR(value, printed, half_a_digit(printed)) << what;
}

// Flops of all regions, each run once: GEMMs of each part, and attention's two (scores, and their sum with the
// values).
struct PartFlops {
  double qkv = 0, attention = 0, out = 0, mlp = 0, head = 0;
  double total() const { return qkv + attention + out + mlp + head; }
};

enum class Counted : uint8_t { model_full, model_causal, executed };

inline PartFlops part_flops(const Program& program, Counted counted) {
  PartFlops sum;
  auto has = [](const Op& op, const char* part) { return op.path.find(part) != std::string::npos; };
  for (const Region& region : program.regions)
    for (const Op& op : region.ops) {
      Cost cost = local_cost(program, op);
      if (!cost.attention && cost.gemms.empty()) continue;
      if (op.phase == Phase::recompute && counted != Counted::executed) continue;
      CountAttention square = counted == Counted::model_full ? CountAttention::full : CountAttention::causal;
      double flops = counted == Counted::executed ? cost.flops.n : model_flops(cost, square).n;
      double& part = cost.attention         ? sum.attention
                     : has(op, ".attn.qkv") ? sum.qkv
                     : has(op, ".attn.out") ? sum.out
                     : has(op, ".mlp.")     ? sum.mlp
                                            : sum.head;
      part += flops;
    }
  return sum;
}

// The message about a config with these overrides; "" when it is accepted.
inline std::string complaint_about(const std::vector<std::string>& overrides) {
  try {
    parse_config("", "run.toml", overrides);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

}  // namespace sextant
