// A step may depend on nothing that an earlier one left behind: with every activation overwritten by NaNs between two
// runs, the second gives the same bits.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "exec/cpu/cpu_executor.h"
#include "models/model.h"
#include "passes/lower.h"

namespace sextant {
namespace {

std::vector<std::byte> bytes_of(const Bound& bound, const Value& value) {
  std::vector<std::byte> bytes(static_cast<size_t>(value.local_bytes().n));
  bound.read(value, bytes);
  return bytes;
}

void fill(Bound& bound, const Value& value, int byte) {
  bound.write(value, std::vector<std::byte>(static_cast<size_t>(value.local_bytes().n), static_cast<std::byte>(byte)));
}

void draw_inputs(Bound& bound) {
  for (const Value& value : bound.program().values) {
    Random random(5, value.path);
    auto count = static_cast<size_t>(value.local.count());
    if (value.kind == ValueKind::parameter || (value.kind == ValueKind::feed && value.dtype == DType::f32)) {
      std::vector<float> x(count);
      for (size_t i = 0; i < count; ++i)
        x[i] = static_cast<float>(0.3 * random.normal(i) + (value.shape.rank() == 1 ? 1 : 0));
      bound.write(value, std::as_bytes(std::span(x)));
    } else if (value.kind == ValueKind::feed) {
      std::vector<int32_t> x(count);
      for (size_t i = 0; i < count; ++i) x[i] = static_cast<int32_t>(random.below(i, 150));
      bound.write(value, std::as_bytes(std::span(x)));
    }
  }
}

// Gradients and fetches of one forward and backward.
std::vector<std::vector<std::byte>> results(Bound& bound) {
  draw_inputs(bound);
  bound.run({.region = RegionKind::forward});
  bound.run({.region = RegionKind::backward});
  std::vector<std::vector<std::byte>> out;
  for (const Value& value : bound.program().values)
    if (value.kind == ValueKind::gradient || (value.kind == ValueKind::fetch && value.path == "loss"))
      out.push_back(bytes_of(bound, value));
  return out;
}

TEST(Poison, NothingIsReadThatWasNotWritten) {
  for (const char* architecture : {"gpt2", "llama"}) {
    for (RecomputeMode mode : {RecomputeMode::none, RecomputeMode::full}) {
      ModelSpec spec{.architecture = architecture,
                     .layers = 2,
                     .hidden = 40,
                     .heads = 5,
                     .kv_heads = 5,
                     .head_dim = 8,
                     .ffn = 72,
                     .vocab = 150,
                     .max_seq = 70,
                     .tied_head = true};
      auto executor = make_cpu_executor(2);
      LowerOptions options{.train = Optimizer{}};
      options.plan.recompute = mode;
      Program program =
          lower(build_model(spec, {.batch = 3, .seq = 70}, single_rank_mesh()), executor->target(), options);
      auto arena = executor->allocate(program.arena_bytes);
      auto bound = executor->bind(program, *arena);
      std::vector<std::vector<std::byte>> first = results(*bound);
      for (const Value& value : program.values) {
        if (value.buffer < 0) continue;
        if (value.kind == ValueKind::activation &&
            program.buffers[static_cast<size_t>(value.buffer)].offset >= program.persistent_bytes)
          fill(*bound, value, 0xFF);
        if (value.kind == ValueKind::gradient) fill(*bound, value, 0);
      }
      EXPECT_EQ(results(*bound), first) << architecture << ", recompute " << static_cast<int>(mode);
    }
  }
}

}  // namespace
}  // namespace sextant
