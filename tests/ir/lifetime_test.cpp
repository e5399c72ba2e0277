// How long bytes are in use: operands of the comm lane until the compute lane knows that their message has ended.
#include "ir/lifetime.h"

#include <gtest/gtest.h>

#include "models/model.h"
#include "passes/lower.h"
#include "targets/cpu/cpu_target.h"

namespace sextant {
namespace {

Program sharded(int64_t layers) {
  ModelSpec spec{.architecture = "llama",
                 .layers = layers,
                 .hidden = 32,
                 .heads = 4,
                 .kv_heads = 4,
                 .head_dim = 8,
                 .ffn = 64,
                 .vocab = 64,
                 .max_seq = 16};
  LowerOptions options{.plan = {.recompute = RecomputeMode::full, .zero = 3, .microbatches = 2}, .train = Optimizer{}};
  Mesh mesh{{{"dp", 2}}};
  return lower(build_model(spec, {.batch = 2, .seq = 16, .parallel = {.zero = 3}}, mesh), cpu_target(1), options);
}

int64_t gathered_bytes(const Program& program, int block) {
  int64_t bytes = 0;
  for (const Value& value : program.values)
    if (value.kind == ValueKind::parameter && value.path.starts_with("layers." + std::to_string(block) + "."))
      bytes += 2 * value.local_bytes().n;
  return bytes;
}

// Waits for a message are written down once for all that started before it. Weights that are gathered again for
// backward are given back, however deep the model: a block more holds its input, and nothing of its weights.
TEST(Lifetime, OfGatheredWeightsEndsWithTheirBlock) {
  Program shallow = sharded(4), deep = sharded(8);
  auto transient = [](const Program& program) { return program.arena_bytes - program.persistent_bytes; };
  int64_t a_block = (transient(deep) - transient(shallow)) / 4;
  EXPECT_LT(a_block, gathered_bytes(deep, 1) / 4);
  EXPECT_GT(a_block, 0);
}

}  // namespace
}  // namespace sextant
