// The rules that memory is planned by: what is written down here is what kernels are given.
#include <gtest/gtest.h>

#include <set>

#include "ops/ops.h"
#include "targets/cpu/attention_sizes.h"
#include "targets/cpu/cpu_target.h"
#include "targets/cuda/attention_sizes.h"
#include "targets/cuda/cuda_target.h"

namespace sextant {
namespace {

LocalType bf16(std::vector<int64_t> dims) {
  return {DType::bf16, LocalShape(std::move(dims))};
}
LocalType f32(std::vector<int64_t> dims) {
  return {DType::f32, LocalShape(std::move(dims))};
}

int64_t cuda_bytes(const OpDef& def, const Attrs& attrs, const LocalTypes& in, const LocalTypes& out,
                   Determinism determinism = Determinism::fast) {
  return cuda_kernel_needs().workspace(def, {attrs, in, out, 1, determinism}).n;
}

const Attrs kHeads{{"heads", 12}, {"kv_heads", 12}, {"head_dim", 64}};

TEST(KernelNeeds, OpsThatAreNotListedNeedNothing) {
  for (const KernelTable* table : {&cpu_kernel_needs(), &cuda_kernel_needs()}) {
    EXPECT_EQ(table->workspace(ops::add, {{}, {}, {}}).n, 0);
    EXPECT_EQ(table->grouping(ops::add), Grouping::alone);
  }
}

// Both have many small tensors.
TEST(KernelNeeds, OnlyTheUpdateAndWhatIsMeasuredAreLaunchedTogether) {
  const std::set<const OpDef*> together{&ops::adamw,
                                        &ops::sum_squares,
                                        &ops::absmax,
                                        &ops::duplicate,
                                        &ops::change_statistics,
                                        &ops::rounding_statistics,
                                        &ops::tensor_statistics};
  for (const OpDef* def : all_ops()) {
    EXPECT_EQ(cuda_kernel_needs().grouping(*def) == Grouping::together, together.contains(def)) << def->name;
    EXPECT_EQ(cpu_kernel_needs().grouping(*def), Grouping::alone) << def->name;
  }
}

// Weights in halves and narrow gradients, and narrow moments; every other kernel of the CPU gets bf16 widened.
TEST(KernelNeeds, OnlyStepsOfAdamwTakeBf16AsItIs) {
  for (const OpDef* def : all_ops()) {
    uint32_t inputs = def == &ops::adamw ? 0b0011 : def == &ops::adamw_rounded ? 0b1100 : 0;
    EXPECT_EQ(cpu_kernel_needs().bf16_inputs(*def), inputs) << def->name;
  }
}

TEST(CudaNeeds, GemmsHaveOneScratchAndSumsTheirPartials) {
  LocalTypes dy{bf16({4, 1024, 768}), bf16({4, 1024, 3072})};
  EXPECT_EQ(cuda_bytes(ops::linear, {}, dy, {}), int64_t{32} << 20);
  // 3 tiles of 256 columns share 528 blocks; 4096 rows are at most 64 slices of 64.
  EXPECT_EQ(cuda_bytes(ops::linear_bias_gradient, {}, dy, {}), 64 * 768 * 4);
  EXPECT_EQ(cuda_bytes(ops::linear_gradients, {}, dy, {}), int64_t{32} << 20);
  EXPECT_EQ(cuda_bytes(ops::layer_norm_backward, {}, dy, {}), 2 * 528 * 768 * 4);
  EXPECT_EQ(cuda_bytes(ops::rms_norm_backward, {}, {bf16({1, 100, 768})}, {}), 100 * 768 * 4);
  LocalTypes weighted = dy;
  weighted.insert(weighted.end(), {bf16({64}), bf16({64})});
  EXPECT_EQ(cuda_bytes(ops::qk_norm_backward, kHeads, weighted, {}), 2 * 528 * 64 * 4);
  EXPECT_EQ(cuda_bytes(ops::qk_norm_backward, kHeads, dy, {}), 0);  // heads without weights
}

TEST(CudaNeeds, TheUpdateNeedsLittle) {
  EXPECT_EQ(cuda_bytes(ops::adamw, {}, {}, {}), 16);
  EXPECT_EQ(cuda_bytes(ops::clip_scale, {}, {}, {}), 8);
  EXPECT_EQ(cuda_bytes(ops::sum_squares, {}, {f32({16384})}, {}), 0);
  EXPECT_EQ(cuda_bytes(ops::sum_squares, {}, {f32({16385})}, {}), 16);
}

TEST(CudaNeeds, LogitsLiveAGigabyteAtOnce) {
  // 65,536 tokens of a vocabulary of 50,304 in bf16: seven chunks of at most 10,496 rows, made equal.
  int64_t chunk = 9472, tokens = 64 * 1024;
  EXPECT_EQ(cuda_bytes(ops::head_loss, {}, {bf16({64, 1024, 768}), bf16({50304, 768})}, {}),
            tokens * 4 + chunk * 50304 * 2 + (int64_t{32} << 20));
}

TEST(CudaNeeds, EmbeddingsNeedTheOrderOfTokens) {
  // 1,000 places: four lists of 4,096 bytes, 512 counts of one tile, and two sums for each of 32 chunks.
  EXPECT_EQ(cuda_bytes(ops::embedding_backward, {}, {bf16({1, 1000, 8}), {DType::i32, LocalShape({1, 1000})}},
                       {f32({700, 8})}),
            4 * 4096 + 2048 + 32 * 2 * 8 * 4);
}

// Our own kernels run where cuDNN is not there or refuses a shape: in the scratch that was planned for cuDNN.
TEST(CudaNeeds, OurOwnAttentionFitsTheLibrarysScratch) {
  for (int64_t batch : {1, 8})
    for (int64_t length : {2, 127, 1024, 8192})
      for (int64_t kv : {1, 4, 12}) {
        AttentionShape shape{batch, length, 12, kv, 64};
        for (Determinism determinism : {Determinism::fast, Determinism::repeatable})
          EXPECT_LE(cuda::attention_dots(shape).n, cuda::attention_library_backward_scratch(shape, determinism).n);
      }
}

TEST(CudaNeeds, AttentionThatCudnnIsNotAskedForNeedsItsDotsAlone) {
  LocalTypes in{bf16({2, 256, 768}), bf16({2, 256, 3 * 768}), bf16({2, 256, 768}), f32({2, 12, 256})};
  int64_t dots = 2 * 12 * 256 * 4;
  EXPECT_GT(cuda_bytes(ops::attention_backward, kHeads, in, {}), dots);
  Attrs alibi = kHeads;
  alibi.set("alibi", int64_t{1});
  EXPECT_EQ(cuda_bytes(ops::attention_backward, alibi, in, {}), dots);
  Attrs dropout = kHeads;
  dropout.set("dropout", 0.1);
  EXPECT_EQ(cuda_bytes(ops::attention_backward, dropout, in, {}), dots);
  for (LocalType& type : in) type.dtype = DType::f32;
  EXPECT_EQ(cuda_bytes(ops::attention_backward, kHeads, in, {}), dots);
}

TEST(CudaNeeds, RepeatableAttentionNeedsAMatrixOfOneSequenceAtLeast) {
  LocalTypes in{bf16({1, 4096, 768}), bf16({1, 4096, 3 * 768}), bf16({1, 4096, 768}), f32({1, 12, 4096})};
  int64_t fast = cuda_bytes(ops::attention_backward, kHeads, in, {});
  EXPECT_EQ(cuda_bytes(ops::attention_backward, kHeads, in, {}, Determinism::repeatable),
            fast + int64_t{12} * 4096 * 4096 * 2);
}

// Llama 3.2 1B, 8 x 4096: batches with room for 72, 36, 288 and 288 documents, each with a length and five places;
// log-sum-exps in cuDNN's order.
// Backward sums dq in f32 in rows as far apart as those of q|k|v, and dk and dv for every query head.
TEST(CudaNeeds, DocumentsAsRaggedBatches) {
  Attrs attrs{{"heads", 32}, {"kv_heads", 8}, {"head_dim", 64}, {"sequence_documents", 9}};
  LocalType begins{DType::i32, LocalShape({8, 4096})}, qkv = bf16({8, 4096, 3072}), y = bf16({8, 4096, 2048});
  const int64_t lengths = 512 + 256 + 2 * 1280, places = 3 * 256 + lengths + 5 * (768 + 512 + 2 * 2560);
  const int64_t positions = 8 * 4096, stats = positions * 32 * 4, small = 4 << 20;
  EXPECT_EQ(cuda_bytes(ops::attention, attrs, {qkv, begins}, {}), places + stats + small);
  int64_t copies = 2 * positions * 8 * 64 * 2, sums = positions * (3072 + 32) * 4 + 2 * positions * 32 * 64 * 4;
  EXPECT_EQ(cuda_bytes(ops::attention_backward, attrs, {y, qkv, y, f32({8, 32, 4096}), begins}, {}),
            places + stats + positions * 32 * 4 + copies + sums + small);
  // Without documents, and in f32, there are no such batches.
  int64_t together = cuda_bytes(ops::attention, attrs, {qkv}, {});
  EXPECT_EQ(together, small);
  EXPECT_EQ(cuda_bytes(ops::attention, attrs, {f32({8, 4096, 3072}), begins}, {}), 0);
}

// Kernels of the CPU are written for f32: operands in f16 have a place in scratch where they are f32, results over an
// input the same one; a weight has its f32 beside it.
TEST(CpuNeeds, OperandsInF16AreWidenedInScratch) {
  auto f16 = [](std::vector<int64_t> dims) { return LocalType{DType::f16, LocalShape(std::move(dims))}; };
  auto bytes = [](const OpDef& def, const LocalTypes& in, const LocalTypes& out) {
    Op op{.def = &def};
    op.inputs.resize(in.size());
    op.outputs.resize(out.size());
    return cpu_target(1).workspace(op, in, out).n;
  };
  EXPECT_EQ(bytes(ops::add, {f16({3, 32}), f16({3, 32})}, {f16({3, 32})}), 3 * 3 * 32 * 4);
  EXPECT_EQ(bytes(ops::add, {f32({3, 32}), f32({3, 32})}, {f32({3, 32})}), 0);
  EXPECT_EQ(bytes(ops::accumulate, {f32({64}), f16({64})}, {f32({64})}), 64 * 4);
  EXPECT_EQ(bytes(ops::send, {f16({64})}, {}), 0);
  LocalType p = f16({64}), wide = f32({64}), scalar = f32({}), step{DType::i32, LocalShape(std::vector<int64_t>{})};
  EXPECT_EQ(bytes(ops::adamw, {p, wide, wide, wide, scalar, scalar, step, wide}, {p, wide, wide, wide}), 0);
  EXPECT_EQ(bytes(ops::adamw, {p, wide, wide, wide, scalar, scalar, step}, {p, wide, wide}), 64 * 4);
}

TEST(CpuNeeds, EveryThreadHasItsOwnAttentionScratch) {
  auto bytes = [](int threads) { return cpu_kernel_needs().workspace(ops::attention, {kHeads, {}, {}, threads}).n; };
  EXPECT_EQ(bytes(1), cpu::attend_scratch(64));
  EXPECT_EQ(bytes(3), 3 * bytes(1));
}

}  // namespace
}  // namespace sextant
