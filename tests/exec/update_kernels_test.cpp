// Property of every update kernel: with scale = 0 no bit of weights and states changes. And the formulas of kernels
// that keep statistics of packed tensors of unequal sizes.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/rng.h"
#include "exec/kernel_runner.h"
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant {
namespace {

// The position of `scale[]` among the inputs of an op that changes some in place; -1 for other ops.
int scale_of(const OpDef& def) {
  std::string inputs(def.operands.substr(0, def.operands.find(" ->")));
  bool updates = std::ranges::any_of(def.alias, [](const Alias& alias) { return alias.rule == Alias::Rule::must; });
  int position = 0;
  for (size_t at = 0; updates && at != std::string::npos; ++position) {
    size_t end = inputs.find(", ", at);
    if (inputs.substr(at, end - at) == "scale[]") return position;
    at = end == std::string::npos ? end : end + 2;
  }
  return -1;
}

TEST(UpdateKernels, WithScaleZeroNoBitChanges) {
  int ops = 0;
  for (const OpDef* def : all_ops()) {
    int scale = scale_of(*def);
    if (scale < 0 || !cpu_kernel(*def).run) continue;
    ++ops;
    for (const Example& example : def->examples)
      for (bool is_finite : {true, false}) {
        std::vector<Numbers> in = draw_inputs(*def, example, 3);
        in[static_cast<size_t>(scale)] = {0};
        // Inputs that are not written back may have any value: gradients of a step that is left out are NaN or
        // infinite.
        if (!is_finite)
          for (size_t i = 0; i < in.size(); ++i)
            if (static_cast<int>(i) != scale && example.inputs[i].dtype == DType::f64 &&
                std::ranges::none_of(def->alias,
                                     [&](const Alias& alias) { return alias.input == static_cast<int>(i); }))
              in[i].back() = std::numeric_limits<double>::quiet_NaN();
        for (DType real : {DType::f64, DType::f32}) {
          std::vector<Numbers> out =
              run_kernel({.def = *def, .attrs = example.attrs, .types = example.inputs, .inputs = in, .real = real});
          for (const Alias& alias : def->alias) {
            if (static_cast<size_t>(alias.output) >= out.size()) continue;
            EXPECT_EQ(out[static_cast<size_t>(alias.output)], in[static_cast<size_t>(alias.input)])
                << def->name << " " << example.name << ", output " << alias.output
                << ", gradients finite: " << is_finite;
          }
        }
      }
  }
  EXPECT_GE(ops, 10);
}

// Packed tensors of 1, 70, 3 and 26 rows.
const std::vector<int64_t> kPacked{1, 70, 3, 26};
constexpr int64_t kRows = 100, kWidth = 37;

size_t packed_of(int64_t row) {
  size_t of = 0;
  for (; row >= kPacked[of]; ++of) row -= kPacked[of];
  return of;
}

Numbers drawn(uint64_t stream, int64_t count) {
  Random random(11, "update kernels", stream);
  Numbers x(static_cast<size_t>(count));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(std::abs(random.normal(i)) + 0.01);
  return x;
}

TEST(UpdateKernels, AdafactorsMeansOfUnequalPackedMatrices) {
  const double decay = -0.8, step = 5, weight = std::pow(step, decay);
  const int64_t count = std::ssize(kPacked);
  Numbers rows = drawn(0, kRows), columns = drawn(1, count * kWidth), r = drawn(2, kRows), c = drawn(3, count * kWidth),
          means(kPacked.size());
  Numbers r_next = r, c_next = c;
  for (int64_t row = 0; row < kRows; ++row) {
    double& mean = r_next[static_cast<size_t>(row)];
    mean = (1 - weight) * mean + weight * rows[static_cast<size_t>(row)] / kWidth;
    means[packed_of(row)] += mean / static_cast<double>(kPacked[packed_of(row)]);
  }
  for (size_t i = 0; i < c.size(); ++i)
    c_next[i] = (1 - weight) * c[i] + weight * columns[i] / static_cast<double>(kPacked[i / kWidth]);
  std::vector<Numbers> out =
      run_kernel({.def = ops::adafactor_means,
                  .attrs = {{"packed", kPacked}, {"beta2_decay", decay}},
                  .types = {f64({kRows}), f64({count, kWidth}), f64({kRows}), f64({count, kWidth}), i32({}), f64({})},
                  .inputs = {rows, columns, r, c, {step}, {0.5}}});
  EXPECT_LT(relative_error(out[0], r_next), 1e-12);
  EXPECT_LT(relative_error(out[1], c_next), 1e-12);
  EXPECT_LT(relative_error(out[2], means), 1e-12);
}

TEST(UpdateKernels, AdafactorsVectorsOfUnequalLengths) {
  const double decay = -0.8, step = 5, weight = std::pow(step, decay), scale = 0.5, eps = 1e-7;
  Numbers p = drawn(4, kRows), g = drawn(5, kRows), v = drawn(6, kRows), u(g.size()), updates(kPacked.size()),
          weights(kPacked.size());
  Numbers v_next = v;
  for (size_t i = 0; i < g.size(); ++i) {
    double gradient = scale * g[i];
    v_next[i] = (1 - weight) * v[i] + weight * gradient * gradient;
    u[i] = gradient / std::sqrt(v_next[i]);
    updates[packed_of(static_cast<int64_t>(i))] += u[i] * u[i];
    weights[packed_of(static_cast<int64_t>(i))] += p[i] * p[i];
  }
  std::vector<Numbers> out = run_kernel({.def = ops::adafactor_vector,
                                         .attrs = {{"packed", kPacked}, {"beta2_decay", decay}, {"eps", eps}},
                                         .types = {f64({kRows}), f64({kRows}), f64({kRows}), i32({}), f64({})},
                                         .inputs = {p, g, v, {step}, {scale}}});
  EXPECT_LT(relative_error(out[0], u), 1e-12);
  EXPECT_LT(relative_error(out[1], v_next), 1e-12);
  EXPECT_LT(relative_error(out[2], updates), 1e-12);
  EXPECT_LT(relative_error(out[3], weights), 1e-12);
}

}  // namespace
}  // namespace sextant
