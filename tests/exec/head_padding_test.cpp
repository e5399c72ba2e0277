// A head whose rows do not divide among tensor-parallel ranks has padding behind its last row on some: it takes no part
// in the loss, and its gradient is zero whatever was in memory.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/rng.h"
#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/gemm.h"
#include "ops/ops.h"
#include "targets/cpu/cpu_target.h"

namespace sextant {
namespace {

constexpr int64_t kTokens = 150, kHidden = 20, kReal = 37, kPadded = 48;

struct Gradients {
  std::vector<double> head, x;
  double loss = 0;
};

Gradients gradients_of(int64_t rows, const Placement* placement) {
  cpu::use_single_threaded_blas();
  Random random(6, "head padding");
  std::vector<double> x(kTokens * kHidden),
      w(static_cast<size_t>(rows * kHidden), std::numeric_limits<double>::quiet_NaN());
  for (size_t i = 0; i < x.size(); ++i) x[i] = random.normal(2 * i);
  for (size_t i = 0; i < kReal * kHidden; ++i) w[i] = random.normal(2 * i + 1);
  std::vector<int32_t> targets(kTokens);
  for (size_t i = 0; i < targets.size(); ++i) targets[i] = static_cast<int32_t>(i * 11 % kReal);
  double seed = 0.25;
  Gradients out{.head = std::vector<double>(w.size(), 1e30), .x = std::vector<double>(x.size(), 1e30)};
  auto tensor = [](void* data, DType dtype, std::vector<int64_t> dims) {
    return Tensor{data, dtype, LocalShape(std::move(dims))};
  };
  std::vector<Tensor> in{tensor(x.data(), DType::f64, {1, kTokens, kHidden}),
                         tensor(w.data(), DType::f64, {rows, kHidden}),
                         tensor(targets.data(), DType::i32, {1, kTokens}), tensor(&seed, DType::f64, {})};
  std::vector<Tensor> made{tensor(out.head.data(), DType::f64, {rows, kHidden}),
                           tensor(out.x.data(), DType::f64, {1, kTokens, kHidden}), tensor(&out.loss, DType::f64, {})};
  in[1].placement = made[0].placement = placement;
  const Attrs attrs{{"z_loss", 0.01}};
  std::vector<std::byte> workspace(static_cast<size_t>(
      cpu_kernel_needs().workspace(ops::head_loss_backward, {attrs, types_of(in), types_of(made), 1}).n + 64));
  auto aligned = (reinterpret_cast<uintptr_t>(workspace.data()) + 63) / 64 * 64;
  ThreadTeam team(1);
  cpu_kernel(ops::head_loss_backward).run({in, made, attrs, reinterpret_cast<std::byte*>(aligned), team});
  return out;
}

TEST(HeadPadding, HasNoLossAndNoGradient) {
  const Placement placement{
      {{{.global = 0, .local = 0, .count = kReal}}, {{.global = 0, .local = 0, .count = kHidden}}}};
  Gradients whole = gradients_of(kReal, nullptr), padded = gradients_of(kPadded, &placement);
  EXPECT_DOUBLE_EQ(padded.loss, whole.loss);
  for (size_t i = 0; i < whole.x.size(); ++i) ASSERT_NEAR(padded.x[i], whole.x[i], 1e-12);
  for (size_t i = 0; i < whole.head.size(); ++i) ASSERT_NEAR(padded.head[i], whole.head[i], 1e-12);
  for (size_t i = whole.head.size(); i < padded.head.size(); ++i) ASSERT_EQ(padded.head[i], 0) << "row " << i / kHidden;
}

}  // namespace
}  // namespace sextant
