// Attention with ALiBi on the device, which our own kernels do (in bf16 on tensor cores where heads allow), against the
// CPU's kernels in f64 on the same numbers; alone, with documents, and over caches.
#include <gtest/gtest.h>

#include "cuda/device_runner.h"
#include "ops/shapes.h"

namespace sextant {
namespace {

struct Shape {
  int64_t length, dim, heads = 6, kv_heads = 2;  // six heads: slopes of both kinds

  static constexpr int64_t kBatch = 2;
  TensorType qkv() const { return f64({kBatch, length, (heads + 2 * kv_heads) * dim}); }
  TensorType y() const { return f64({kBatch, length, heads * dim}); }
  TensorType lse() const { return f64({kBatch, heads, length}); }
  TensorType begins() const { return i32({kBatch, length}); }
  Attrs attrs() const { return {{"heads", heads}, {"kv_heads", kv_heads}, {"head_dim", dim}, {"alibi", 1}}; }
};

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
  EXPECT_EQ(run_cuda_kernel(run, device), results.here) << run.def.name << ": not the same bits twice";
  run.real = DType::f64;
  results.exact = run_kernel(run);
  return results;
}

enum class Documents { one, several };

void expect_like_cpu(const Shape& shape, DType real, Documents documents, CudaDevice& device) {
  SCOPED_TRACE(fmt::format("{} s{} d{}", name_of(real), shape.length, shape.dim));
  std::vector<Numbers> drawn = draw_inputs(ops::attention, {"", {shape.qkv(), shape.y()}, shape.attrs()});
  KernelRun forward{
      .def = ops::attention, .attrs = shape.attrs(), .types = {shape.qkv()}, .inputs = {drawn[0]}, .real = real};
  Numbers begins;
  for (int64_t i = 0; i < Shape::kBatch * shape.length; ++i)
    begins.push_back(static_cast<double>(i % shape.length / 17 * 17));
  if (documents == Documents::several) forward.types.push_back(shape.begins()), forward.inputs.push_back(begins);
  Results y = run_both(forward, device);
  EXPECT_LT(relative_error(y.here[0], y.exact[0]), tolerance(real)) << "y";
  EXPECT_LT(relative_error(y.here[1], y.exact[1]), tolerance(real)) << "lse";
  KernelRun backward{.def = ops::attention_backward,
                     .attrs = shape.attrs(),
                     .types = {shape.y(), shape.qkv(), shape.y(), shape.lse()},
                     .inputs = {drawn[1], drawn[0], y.exact[0], y.exact[1]},
                     .real = real};
  if (documents == Documents::several) backward.types.push_back(shape.begins()), backward.inputs.push_back(begins);
  Results dqkv = run_both(backward, device);
  EXPECT_LT(relative_error(dqkv.here[0], dqkv.exact[0]), tolerance(real)) << "dqkv";
}

class CudaAlibi : public OnDevice {};

TEST_F(CudaAlibi, AsOnTheCpu) {
  for (DType real : {DType::f32, DType::bf16})
    for (int64_t dim : {7, 20, 64, 112, 128, 132})
      for (int64_t length : {1, 70, 300})
        for (Documents documents : {Documents::one, Documents::several})
          expect_like_cpu({length, dim}, real, documents, device());
}

TEST_F(CudaAlibi, OverCachesAsOnTheCpu) {
  for (DType real : {DType::f32, DType::bf16})
    for (int64_t length : {1, 40}) {
      Shape shape{length, 64};
      TensorType cache = f64({Shape::kBatch, shape.kv_heads, 200, 64});
      std::vector<Numbers> drawn =
          draw_inputs(ops::attention_cached, {"", {shape.qkv(), cache, cache, i32({})}, shape.attrs()});
      drawn[3] = {130};
      Results y = run_both({.def = ops::attention_cached,
                            .attrs = shape.attrs(),
                            .types = {shape.qkv(), cache, cache, i32({})},
                            .inputs = drawn,
                            .real = real},
                           device());
      EXPECT_LT(relative_error(y.here[0], y.exact[0]), tolerance(real)) << name_of(real) << " length " << length;
    }
}

}  // namespace
}  // namespace sextant
