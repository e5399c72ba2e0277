// Choices of the pass quantize, read from the Programs: which linears, how often, and which values are communicated.
#include "passes/quantize.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/fp8.h"
#include "ir/lane.h"
#include "models/model.h"
#include "ops/ops.h"
#include "passes/hops.h"
#include "passes/lower.h"
#include "passes/memory.h"
#include "targets/cpu/cpu_target.h"
#include "targets/cuda/cuda_target.h"

namespace sextant {
namespace {

ModelSpec small_model(int64_t hidden = 64) {
  return {.architecture = "llama",
          .layers = 4,
          .hidden = hidden,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = hidden / 4,
          .ffn = 2 * hidden,
          .vocab = 64,
          .max_seq = 256};
}

struct Shape {
  int dp = 1, tp = 1, zero = 0, microbatches = 1;
  int64_t seq = 32, hidden = 64, skip = 0, batch = 1;  // batch: of a rank
  bool sequence_parallel = false;
  RecomputeMode recompute = RecomputeMode::none;
};

Program quantized_program(std::string_view recipe, const Shape& shape, const Target& target = cpu_target(1)) {
  Mesh mesh{{{"pp", 1}, {"dp", shape.dp}, {"cp", 1}, {"tp", shape.tp}}};
  Use use{.batch = shape.dp * shape.batch,
          .seq = shape.seq,
          .parallel = {.sequence = shape.sequence_parallel, .zero = shape.zero}};
  LowerOptions options{
      .plan = {.recompute = shape.recompute, .zero = shape.zero, .microbatches = shape.microbatches},
      .train = Optimizer{},
      .quantization = {.recipe = find_fp8_recipe(*value_of_word<Precision>(recipe)), .skip = shape.skip}};
  return lower(build_model(small_model(shape.hidden), use, mesh), target, options);
}

template <class Visit>
void for_every_op(const Program& program, const Visit& visit) {
  for (const Region& region : program.regions)
    for (const Op& op : region.ops) visit(region, op);
}

std::map<std::string, int> ops_by_name(const Program& program) {
  std::map<std::string, int> count;
  for_every_op(program, [&](const Region&, const Op& op) { ++count[std::string(op.def->name)]; });
  return count;
}

TEST(QuantizePass, LinearsOfBlocksAndNothingElse) {
  // qkv, output, gate|up and down of each of four blocks.
  std::map<std::string, int> wide = ops_by_name(quantized_program("", {}));
  EXPECT_EQ(wide["linear"], 16);
  for (const char* recipe : {"fp8", "fp8-block"}) {
    SCOPED_TRACE(recipe);
    bool block = std::string_view(recipe) == "fp8-block";
    std::string name = block ? "fp8_block_linear" : "fp8_linear";
    std::map<std::string, int> narrow = ops_by_name(quantized_program(recipe, {}));
    EXPECT_EQ(narrow["linear"] + narrow["linear_input_gradient"] + narrow["linear_weight_gradient"], 0);
    for (const char* part : {"", "_input_gradient", "_weight_gradient"}) EXPECT_EQ(narrow[name + part], 16) << part;
    // A value is quantised once: x and dy of every linear, and its weight.
    EXPECT_EQ(narrow[block ? "quantize_tiles" : "quantize_activation"], 32);
    EXPECT_EQ(narrow[block ? "quantize_blocks" : "quantize_weight"], 16);
    EXPECT_EQ(narrow["absmax"], block ? 0 : 48);
    for (const auto& [other, count] : wide)
      if (other.find("linear") == std::string::npos) {
        EXPECT_EQ(narrow[other], count) << other;
      }
  }
}

TEST(QuantizePass, FormatsFollowTheRecipe) {
  Program program = quantized_program("fp8", {});
  int gradients = 0;
  for_every_op(program, [&](const Region&, const Op& op) {
    if (op.def != &ops::quantize_activation && op.def != &ops::quantize_weight) return;
    const Value& codes = program[op.outputs[0]];
    bool gradient = op.phase != Phase::forward;
    EXPECT_EQ(codes.dtype, gradient ? DType::e5m2 : DType::e4m3) << op.path;
    EXPECT_EQ(codes.local_bytes().n, codes.local.count());
    gradients += gradient ? 1 : 0;
  });
  EXPECT_EQ(gradients, 16);
  for_every_op(quantized_program("fp8-block", {}), [&](const Region&, const Op& op) {
    if (op.def == &ops::quantize_tiles || op.def == &ops::quantize_blocks) {
      EXPECT_EQ(op.attrs.text_or("dtype", ""), "e4m3");
    }
  });
}

TEST(QuantizePass, SkippedBlocksSayWhyTheyAreWide) {
  Program program = quantized_program("fp8", {.skip = 1});
  std::set<int> wide_blocks, narrow_blocks;
  for_every_op(program, [&](const Region&, const Op& op) {
    if (op.def == &ops::fp8_linear) narrow_blocks.insert(op.block);
    if (op.def != &ops::linear) return;
    wide_blocks.insert(op.block);
    EXPECT_EQ(op.attrs.text_or("kept_wide", ""), "train.fp8_skip");
  });
  EXPECT_EQ(wide_blocks, (std::set<int>{0, 3}));
  EXPECT_EQ(narrow_blocks, (std::set<int>{1, 2}));
}

TEST(QuantizePass, SizesThatFp8UnitsDoNotTakeStayWide) {
  Program program = quantized_program("fp8", {.seq = 24});
  int kept = 0;
  for_every_op(program, [&](const Region&, const Op& op) {
    EXPECT_NE(op.def, &ops::fp8_linear);
    kept += op.attrs.text_or("kept_wide", "") == "a size is no multiple of 16" ? 1 : 0;
  });
  EXPECT_EQ(kept, 48);
  // 128 columns of the output of attention are half a tile on each of two ranks.
  std::map<std::string, int> reasons;
  for_every_op(quantized_program("fp8-block", {.tp = 2, .seq = 128, .hidden = 128}), [&](const Region&, const Op& op) {
    if (op.attrs.has("kept_wide")) ++reasons[op.attrs.text_or("kept_wide", "")];
  });
  EXPECT_GT(reasons["the mesh cuts tiles"], 0);
  EXPECT_EQ(reasons.size(), 1u);
}

// Once a step, whatever the number of microbatches; and kept for them in bytes of the weights.
TEST(QuantizePass, WeightsAreQuantisedOnceAStep) {
  for (const char* recipe : {"fp8", "fp8-block"}) {
    Program one = quantized_program(recipe, {}), several = quantized_program(recipe, {.microbatches = 4});
    Program wide = quantized_program("", {.microbatches = 4});
    int once = 0;
    int64_t kept = 0;
    for_every_op(several, [&](const Region& region, const Op& op) {
      bool of_weight = op.def == &ops::quantize_weight || op.def == &ops::quantize_blocks;
      if (!of_weight) return;
      EXPECT_EQ(op.runs_for, RunsFor::first_microbatch);
      EXPECT_EQ(region.kind, RegionKind::forward);
      ++once;
      for (ValueId id : op.outputs) {
        EXPECT_EQ(several[id].kind, ValueKind::quantized);
        EXPECT_EQ(several.buffers[static_cast<size_t>(several[id].buffer)].kind, BufferClass::weights);
        kept += several.buffers[static_cast<size_t>(several[id].buffer)].bytes;
      }
    });
    EXPECT_EQ(once, 16);
    EXPECT_EQ(memory_use(several).weights.n, memory_use(wide).weights.n + kept);
    EXPECT_EQ(memory_use(one).weights.n, memory_use(wide).weights.n);
  }
}

// ZeRO-3: shards are quantised where they are, and bytes of fp8 are gathered, the plain copy forward and the transposed
// one backward.
TEST(QuantizePass, WeightsAreGatheredInFp8) {
  for (bool tp : {false, true}) {
    Program program = quantized_program("fp8", {.dp = 2, .tp = tp ? 2 : 1, .zero = 3, .microbatches = 2});
    int forward = 0, backward = 0, maxima = 0;
    for_every_op(program, [&](const Region& region, const Op& op) {
      if (is_hop(op, Transfer::all_reduce_max)) ++maxima;
      if (!is_hop(op, Transfer::all_gather)) return;
      const Value& value = program[op.inputs[0]];
      if (value.kind != ValueKind::quantized) return;
      EXPECT_EQ(size_of(value.dtype), 1);
      EXPECT_EQ(op.lane, Lane::comm) << "ahead of its use";
      ++(region.kind == RegionKind::forward ? forward : backward);
    });
    EXPECT_EQ(forward, 16);
    EXPECT_EQ(backward, 16);
    EXPECT_GT(maxima, 16);
    for (const Value& value : program.values)
      if (value.kind == ValueKind::parameter && value.shape.rank() == 2)
        for_every_op(program, [&](const Region& region, const Op& op) {
          bool linear_weight = op.block >= 0 && region.kind != RegionKind::update;
          if (linear_weight && is_hop(op, Transfer::all_gather)) {
            EXPECT_NE(op.inputs[0], value.id) << value.path;
          }
        });
  }
}

// Activations that are gathered for a linear are gathered again in backward, in fp8 as without.
TEST(QuantizePass, GatheredActivationsAreNotKept) {
  Shape shape{.tp = 2, .microbatches = 2, .sequence_parallel = true};  // weights are then kept apart
  Program narrow = quantized_program("fp8", shape), wide = quantized_program("", shape);
  EXPECT_LT(memory_use(narrow).saved.n, memory_use(wide).saved.n);
  for (RecomputeMode mode : {RecomputeMode::norms, RecomputeMode::selective, RecomputeMode::full}) {
    shape.recompute = mode;
    EXPECT_LT(memory_use(quantized_program("fp8", shape)).saved.n, memory_use(wide).saved.n);
  }
}

// An op that can finds the largest magnitude of what it writes, so that nothing reads the value only for that: of a
// block all but what attention writes, and the weights.
TEST(QuantizePass, WhatMakesAValueFindsItsMagnitude) {
  Target target = cpu_target(1);
  target.fusions = {"add_norm", "norm_gradient", "amax"};
  for (RecomputeMode recompute : {RecomputeMode::none, RecomputeMode::full}) {
    Program program = quantized_program("fp8", {.recompute = recompute}, target);
    std::map<ValueId, const Op*> maker;
    int measured = 0, left = 0;
    for_every_op(program, [&](const Region&, const Op& op) {
      for (ValueId id : op.outputs) maker[id] = &op;
      measured += static_cast<int>(op.attrs.integer_or("amax", 0));
      if (op.def != &ops::absmax) return;
      ++left;
      bool weight = program[op.inputs[0]].kind == ValueKind::parameter;
      EXPECT_TRUE(weight || maker.at(op.inputs[0])->def == &ops::attention) << op.path;
    });
    EXPECT_EQ(measured, 28);  // of four blocks: three inputs of linears, and the gradients of four
    EXPECT_EQ(left, 20);
  }
}

// A GPU turns scales of tiles, and pads those of blocks, in scratch in front of the GEMM's 32 MiB.
TEST(QuantizePass, PlansTheScratchOfScalesOnAGpu) {
  constexpr int64_t kGemm = int64_t{32} << 20;
  auto codes = [](std::vector<int64_t> dims) { return LocalType{DType::e4m3, LocalShape(std::move(dims))}; };
  auto f32 = [](std::vector<int64_t> dims) { return LocalType{DType::f32, LocalShape(std::move(dims))}; };
  auto bytes = [&](const OpDef& def, const LocalTypes& in, const LocalTypes& out) {
    Attrs tile{{"tile", 128}};
    return cuda_kernel_needs().workspace(def, {tile, in, out}).n - kGemm;
  };
  // 3·32 rows with 5 tiles each, 2 rows of 5 blocks that become 8; 8 blocks lie right as they are.
  EXPECT_EQ(bytes(ops::fp8_block_linear, {codes({3, 32, 640}), f32({3, 32, 5}), codes({256, 640}), f32({2, 5})},
                  {f32({3, 32, 256})}),
            2048 + 256);
  EXPECT_EQ(bytes(ops::fp8_block_linear_input_gradient,
                  {codes({3, 32, 1024}), f32({3, 32, 8}), codes({256, 1024}), f32({2, 8})}, {f32({3, 32, 256})}),
            3072);
  EXPECT_EQ(bytes(ops::fp8_block_linear_weight_gradient,
                  {codes({256, 3, 48}), f32({256, 3, 1}), codes({64, 3, 48}), f32({64, 3, 1})}, {f32({256, 64})}),
            3072 + 768);
  EXPECT_EQ(bytes(ops::fp8_linear, {codes({3, 32, 640}), f32({}), codes({256, 640}), f32({})}, {f32({3, 32, 256})}), 0);
}

// Sequences whose last tile is not full are summed over one by one, so each must have a length that the units take.
TEST(QuantizePass, TilesAskForSequencesOfWholeUnits) {
  std::map<std::string, int> whole = ops_by_name(quantized_program("fp8-block", {.seq = 48, .batch = 2}));
  EXPECT_EQ(whole["fp8_block_linear"], 16);
  Program odd = quantized_program("fp8-block", {.seq = 40, .batch = 2});
  EXPECT_EQ(ops_by_name(odd)["fp8_block_linear"], 0);
  EXPECT_EQ(ops_by_name(quantized_program("fp8", {.seq = 40, .batch = 2}))["fp8_linear"], 16);
  for_every_op(odd, [&](const Region&, const Op& op) {
    if (op.def == &ops::linear && op.block >= 0) {
      EXPECT_EQ(op.attrs.text_or("kept_wide", ""), "a size is no multiple of 16");
    }
  });
}

}  // namespace
}  // namespace sextant
