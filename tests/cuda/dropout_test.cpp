// Attention with dropout on the device, which our own kernels do (in bf16 on tensor cores where heads allow), against
// the CPU's kernels in f64 on the same numbers; alone, with documents and with windows. The op dropout is among those
// of ops_test.cpp, rings are in train_test.cpp.
#include <gtest/gtest.h>

#include "cuda/device_runner.h"
#include "ops/shapes.h"

namespace sextant {
namespace {

struct DropoutShape {
  int64_t length, dim, window = 0, heads = 6, kv_heads = 2;

  static constexpr int64_t kBatch = 2;
  TensorType qkv() const { return f64({kBatch, length, (heads + 2 * kv_heads) * dim}); }
  TensorType y() const { return f64({kBatch, length, heads * dim}); }
  TensorType lse() const { return f64({kBatch, heads, length}); }
  Attrs attrs() const {
    Attrs attrs{{"heads", heads}, {"kv_heads", kv_heads}, {"head_dim", dim}, {"dropout", 0.3}, {"site", 5}};
    if (window > 0) attrs.set("window", window);
    return attrs;
  }
};

const Numbers kDropoutKeys{1e15 + 3, 77};

// Compares the device results of a run with the exact ones, output by output. Returns the exact ones.
std::vector<Numbers> expect_dropout_like_cpu(KernelRun run, CudaDevice& device) {
  DType real = run.real;
  run.inputs = rounded_inputs(run);
  std::vector<Numbers> here = run_cuda_kernel(run, device);
  EXPECT_EQ(run_cuda_kernel(run, device), here) << run.def.name << ": not the same bits twice";
  run.real = DType::f64;
  std::vector<Numbers> exact = run_kernel(run);
  for (size_t i = 0; i < exact.size(); ++i)
    EXPECT_LT(relative_error(here[i], exact[i]), real == DType::bf16 ? 1e-2 : 1e-5) << run.def.name << " output " << i;
  return exact;
}

enum class Sequences { of_one_document, of_several };

void expect_both_directions(const DropoutShape& shape, DType real, Sequences sequences, CudaDevice& device) {
  SCOPED_TRACE(fmt::format("{} s{} d{} w{}", name_of(real), shape.length, shape.dim, shape.window));
  std::vector<Numbers> drawn = draw_inputs(ops::attention, {"", {shape.qkv(), shape.y()}, shape.attrs()});
  KernelRun forward{
      .def = ops::attention, .attrs = shape.attrs(), .types = {shape.qkv()}, .inputs = {drawn[0]}, .real = real};
  KernelRun backward{.def = ops::attention_backward,
                     .attrs = shape.attrs(),
                     .types = {shape.y(), shape.qkv(), shape.y(), shape.lse()},
                     .inputs = {drawn[1], drawn[0], {}, {}},
                     .real = real};
  Numbers begins;
  for (int64_t i = 0; i < DropoutShape::kBatch * shape.length; ++i)
    begins.push_back(static_cast<double>(i % shape.length / 17 * 17));
  for (KernelRun* run : {&forward, &backward}) {
    if (sequences == Sequences::of_several) {
      run->types.push_back(i32({DropoutShape::kBatch, shape.length}));
      run->inputs.push_back(begins);
    }
    run->types.push_back(i64({DropoutShape::kBatch}));
    run->inputs.push_back(kDropoutKeys);
  }
  std::vector<Numbers> y = expect_dropout_like_cpu(forward, device);
  backward.inputs[2] = y[0];
  backward.inputs[3] = y[1];
  expect_dropout_like_cpu(backward, device);
}

class CudaDropout : public OnDevice {};

TEST_F(CudaDropout, AttentionAsOnTheCpu) {
  for (DType real : {DType::f32, DType::bf16})
    for (int64_t dim : {7, 20, 64, 128, 132})
      for (int64_t length : {1, 70, 300})
        for (Sequences sequences : {Sequences::of_one_document, Sequences::of_several})
          expect_both_directions({length, dim}, real, sequences, device());
}

TEST_F(CudaDropout, WindowsAsOnTheCpu) {
  for (DType real : {DType::f32, DType::bf16})
    for (int64_t window : {9, 100})
      expect_both_directions({300, 64, window}, real, Sequences::of_one_document, device());
}

}  // namespace
}  // namespace sextant
