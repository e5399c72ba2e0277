// Attention that keeps the documents of a sequence apart, on the device (through cuDNN where it can, and by our own
// kernels), against the CPU's kernels in f64 on the same numbers.
#include <gtest/gtest.h>

#include "cuda/device_runner.h"
#include "exec/cuda/attention/attention_library.h"
#include "ops/shapes.h"

namespace sextant {
namespace {

struct Shape {
  int64_t length, dim, heads = 4, kv_heads = 2;

  static constexpr int64_t kBatch = 4;
  TensorType qkv() const { return f64({kBatch, length, (heads + 2 * kv_heads) * dim}); }
  TensorType y() const { return f64({kBatch, length, heads * dim}); }
  TensorType lse() const { return f64({kBatch, heads, length}); }
  TensorType begins() const { return i32({kBatch, length}); }
  Attrs attrs() const { return {{"heads", heads}, {"kv_heads", kv_heads}, {"head_dim", dim}}; }
  std::string text() const { return fmt::format("s{} h{} kv{} d{}", length, heads, kv_heads, dim); }
};

// Sequences of a few documents, of one, of many small ones, and of queries that are told to begin behind themselves.
Numbers begins_of_queries(int64_t length) {
  Numbers begins;
  for (int64_t i = 0; i < length; ++i)
    begins.push_back(static_cast<double>(i < 1 ? 0 : i < 10 ? 1 : i < 10 + length / 3 ? 10 : 10 + length / 3));
  begins.insert(begins.end(), static_cast<size_t>(length), 0);
  for (int64_t i = 0; i < length; ++i) begins.push_back(static_cast<double>(i / 7 * 7));
  for (int64_t i = 0; i < length; ++i) begins.push_back(static_cast<double>(i % 5 == 0 ? length + 3 : i / 2));
  return begins;
}

double tolerance(DType real) {
  return real == DType::bf16 ? 1e-2 : 1e-5;
}

// Device results of a run, next to the exact ones.
struct Results {
  std::vector<Numbers> here, exact;
};

Results run_both(KernelRun run, CudaDevice& device) {
  run.inputs = rounded_inputs(run);
  Results results{run_cuda_kernel(run, device), {}};
  // In bf16 it may be cuDNN, whose sums have no order.
  if (run.real == DType::f32) {
    EXPECT_EQ(run_cuda_kernel(run, device), results.here) << run.def.name << ": not the same bits twice";
  }
  run.real = DType::f64;
  results.exact = run_kernel(run);
  return results;
}

void expect_like_cpu(const Shape& shape, DType real, CudaDevice& device) {
  SCOPED_TRACE(fmt::format("{} {}", name_of(real), shape.text()));
  Numbers begins = begins_of_queries(shape.length);
  std::vector<Numbers> drawn = draw_inputs(ops::attention, {"", {shape.qkv(), shape.y()}, shape.attrs()});
  KernelRun forward{.def = ops::attention,
                    .attrs = shape.attrs(),
                    .types = {shape.qkv(), shape.begins()},
                    .inputs = {drawn[0], begins},
                    .real = real};
  Results y = run_both(forward, device);
  EXPECT_LT(relative_error(y.here[0], y.exact[0]), tolerance(real)) << "y";
  EXPECT_LT(relative_error(y.here[1], y.exact[1]), tolerance(real)) << "lse";
  KernelRun backward{.def = ops::attention_backward,
                     .attrs = shape.attrs(),
                     .types = {shape.y(), shape.qkv(), shape.y(), shape.lse(), shape.begins()},
                     .inputs = {drawn[1], drawn[0], y.exact[0], y.exact[1], begins},
                     .real = real};
  Results dqkv = run_both(backward, device);
  EXPECT_LT(relative_error(dqkv.here[0], dqkv.exact[0]), tolerance(real)) << "dqkv";
}

class CudaDocumentMask : public OnDevice {};

TEST_F(CudaDocumentMask, AsOnTheCpu) {
  for (DType real : {DType::f32, DType::bf16})
    for (int64_t dim : {16, 64, 128})
      for (int64_t length : {70, 128, 300}) expect_like_cpu({length, dim}, real, device());
}

// Heads that cuDNN does not take, and so our own kernels in bf16 whatever cuDNN can do.
TEST_F(CudaDocumentMask, OfOddHeadsAsOnTheCpu) {
  for (int64_t dim : {7, 20, 100, 132})
    for (int64_t length : {1, 70, 300}) expect_like_cpu({length, dim}, DType::bf16, device());
}

// Says which way the figures above have gone.
TEST_F(CudaDocumentMask, GoesThroughTheLibraryWhereItCan) {
  if (!device().attention().problem().empty()) GTEST_SKIP() << device().attention().problem();
  AttentionShape shape{Shape::kBatch, 128, 4, 2, 64, 64, Documents::apart};
  const char* ways[] = {"our own kernels", "cuDNN"};
  std::printf("  forward by %s, backward by %s\n", ways[device().attention().forward(shape) != nullptr],
              ways[device().attention().backward(shape) != nullptr]);
}

}  // namespace
}  // namespace sextant
