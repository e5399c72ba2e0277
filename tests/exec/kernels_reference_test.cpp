// The f64 kernels against formulas written out naively: one loop per index, no blocks, no tricks. Shapes are such that
// whatever a kernel cuts into blocks (rows, columns, positions, chunks of logits) gives at least three of them and a
// remainder.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "exec/kernel_runner.h"
#include "ops/shapes.h"

namespace sextant {
namespace {

constexpr double kTolerance = 1e-12;

struct Sample {
  const OpDef& def;
  Example example;
  std::vector<Numbers> in = draw_inputs(def, example, 7);

  std::vector<Numbers> run() const {
    return run_kernel({.def = def, .attrs = example.attrs, .types = example.inputs, .inputs = in, .threads = 2});
  }
};

TEST(KernelReference, Linear) {
  constexpr size_t kRows = 397, kIn = 45, kOut = 401;
  Sample sample{ops::linear, {"", {f64({1, kRows, kIn}), f64({kOut, kIn}), f64({kOut})}, {}}};
  Numbers y;
  for (size_t r = 0; r < kRows; ++r)
    for (size_t o = 0; o < kOut; ++o) {
      double sum = sample.in[2][o];
      for (size_t i = 0; i < kIn; ++i) sum += sample.in[0][r * kIn + i] * sample.in[1][o * kIn + i];
      y.push_back(sum);
    }
  EXPECT_LT(relative_error(sample.run()[0], y), kTolerance);
}

TEST(KernelReference, LinearGradients) {
  constexpr size_t kRows = 397, kIn = 389, kOut = 391;
  Sample input{ops::linear_input_gradient, {"", {f64({1, kRows, kOut}), f64({kOut, kIn})}, {}}};
  Numbers dx(kRows * kIn);
  for (size_t r = 0; r < kRows; ++r)
    for (size_t o = 0; o < kOut; ++o)
      for (size_t i = 0; i < kIn; ++i) dx[r * kIn + i] += input.in[0][r * kOut + o] * input.in[1][o * kIn + i];
  EXPECT_LT(relative_error(input.run()[0], dx), kTolerance);

  Sample weight{ops::linear_weight_gradient, {"", {f64({1, kRows, kOut}), f64({1, kRows, kIn})}, {}}};
  Sample bias{ops::linear_bias_gradient, {"", {f64({1, kRows, kOut})}, {}}};
  Numbers dw(kOut * kIn), dbias(kOut);
  for (size_t r = 0; r < kRows; ++r)
    for (size_t o = 0; o < kOut; ++o) {
      dbias[o] += bias.in[0][r * kOut + o];
      for (size_t i = 0; i < kIn; ++i) dw[o * kIn + i] += weight.in[0][r * kOut + o] * weight.in[1][r * kIn + i];
    }
  EXPECT_LT(relative_error(weight.run()[0], dw), kTolerance);
  EXPECT_LT(relative_error(bias.run()[0], dbias), kTolerance);
}

TEST(KernelReference, RmsNorm) {
  constexpr size_t kRows = 1500, kWidth = 33;
  Sample sample{ops::rms_norm, {"", {f64({2, 750, kWidth}), f64({kWidth})}, {{"eps", 0.01}}}};
  Numbers y, r;
  for (size_t row = 0; row < kRows; ++row) {
    double mean = 0;
    for (size_t j = 0; j < kWidth; ++j) mean += std::pow(sample.in[0][row * kWidth + j], 2) / kWidth;
    r.push_back(1 / std::sqrt(mean + 0.01));
    for (size_t j = 0; j < kWidth; ++j) y.push_back(sample.in[0][row * kWidth + j] * r.back() * sample.in[1][j]);
  }
  EXPECT_LT(relative_error(sample.run()[0], y), kTolerance);
  EXPECT_LT(relative_error(sample.run()[1], r), kTolerance);
}

TEST(KernelReference, RmsNormBackward) {
  constexpr size_t kRows = 70, kWidth = 1600;
  Sample sample{ops::rms_norm_backward,
                {"", {f64({2, 35, kWidth}), f64({2, 35, kWidth}), f64({kWidth}), f64({2, 35})}, {}}};
  const Numbers &dy = sample.in[0], &x = sample.in[1], &w = sample.in[2], &r = sample.in[3];
  Numbers dx, dw(kWidth);
  for (size_t row = 0; row < kRows; ++row) {
    double mean = 0;
    for (size_t j = 0; j < kWidth; ++j) mean += dy[row * kWidth + j] * w[j] * x[row * kWidth + j] / kWidth;
    for (size_t j = 0; j < kWidth; ++j) {
      size_t i = row * kWidth + j;
      dx.push_back(r[row] * (dy[i] * w[j] - x[i] * r[row] * r[row] * mean));
      dw[j] += dy[i] * x[i] * r[row];
    }
  }
  EXPECT_LT(relative_error(sample.run()[0], dx), kTolerance);
  EXPECT_LT(relative_error(sample.run()[1], dw), kTolerance);
}

TEST(KernelReference, LayerNorm) {
  constexpr size_t kRows = 1500, kWidth = 33;
  Sample sample{ops::layer_norm, {"", {f64({2, 750, kWidth}), f64({kWidth}), f64({kWidth})}, {{"eps", 0.01}}}};
  Numbers y, m, r;
  for (size_t row = 0; row < kRows; ++row) {
    const double* x = sample.in[0].data() + row * kWidth;
    double mean = 0, variance = 0;
    for (size_t j = 0; j < kWidth; ++j) mean += x[j] / kWidth;
    for (size_t j = 0; j < kWidth; ++j) variance += (x[j] - mean) * (x[j] - mean) / kWidth;
    m.push_back(mean);
    r.push_back(1 / std::sqrt(variance + 0.01));
    for (size_t j = 0; j < kWidth; ++j) y.push_back((x[j] - mean) * r.back() * sample.in[1][j] + sample.in[2][j]);
  }
  std::vector<Numbers> out = sample.run();
  EXPECT_LT(relative_error(out[0], y), kTolerance);
  EXPECT_LT(relative_error(out[1], m), kTolerance);
  EXPECT_LT(relative_error(out[2], r), kTolerance);
}

TEST(KernelReference, LayerNormBackward) {
  constexpr size_t kRows = 70, kWidth = 1600;
  Sample sample{ops::layer_norm_backward,
                {"", {f64({2, 35, kWidth}), f64({2, 35, kWidth}), f64({kWidth}), f64({2, 35}), f64({2, 35})}, {}}};
  Numbers dx, dw(kWidth), dbias(kWidth);
  for (size_t row = 0; row < kRows; ++row) {
    const double *dy = sample.in[0].data() + row * kWidth, *x = sample.in[1].data() + row * kWidth;
    double m = sample.in[3][row], r = sample.in[4][row], mean_g = 0, mean_gn = 0;
    for (size_t j = 0; j < kWidth; ++j) {
      double g = dy[j] * sample.in[2][j], n = (x[j] - m) * r;
      mean_g += g / kWidth;
      mean_gn += g * n / kWidth;
      dw[j] += dy[j] * n;
      dbias[j] += dy[j];
    }
    for (size_t j = 0; j < kWidth; ++j) dx.push_back(r * (dy[j] * sample.in[2][j] - mean_g - (x[j] - m) * r * mean_gn));
  }
  std::vector<Numbers> out = sample.run();
  EXPECT_LT(relative_error(out[0], dx), kTolerance);
  EXPECT_LT(relative_error(out[1], dw), kTolerance);
  EXPECT_LT(relative_error(out[2], dbias), kTolerance);
}

// A mean that is large beside the deviation must not drown the gradient in rounding errors.
TEST(KernelReference, LayerNormBackwardWithLargeMean) {
  constexpr size_t kWidth = 64;
  Sample sample{ops::layer_norm_backward,
                {"", {f64({1, 1, kWidth}), f64({1, 1, kWidth}), f64({kWidth}), f64({1, 1}), f64({1, 1})}, {}}};
  for (double& x : sample.in[1]) x = static_cast<float>(x + 3000);
  sample.in[3][0] = 3000;
  KernelRun run{.def = sample.def, .attrs = {}, .types = sample.example.inputs, .inputs = sample.in};
  Numbers exact = run_kernel(run)[0];
  run.real = DType::f32;
  EXPECT_LT(relative_error(run_kernel(run)[0], exact), 1e-6);
}

TEST(KernelReference, Rope) {
  constexpr size_t kBatch = 2, kLength = 650, kHeads = 3, kKvHeads = 1, kDim = 8, kWidth = 5 * kDim;
  Sample sample{
      ops::rope,
      {"",
       {f64({kBatch, kLength, kWidth}), i32({})},
       {{"heads", int64_t{kHeads}}, {"kv_heads", int64_t{kKvHeads}}, {"head_dim", int64_t{kDim}}, {"theta", 100.0}},
       50}};
  double start = sample.in[1][0];
  Numbers y = sample.in[0];
  for (size_t row = 0; row < kBatch * kLength; ++row)
    for (size_t head = 0; head < kHeads + kKvHeads; ++head)
      for (size_t j = 0; j < kDim / 2; ++j) {
        double angle =
            (start + static_cast<double>(row % kLength)) * std::pow(100.0, -2.0 * static_cast<double>(j) / kDim);
        size_t at = row * kWidth + head * kDim + j;
        double a = sample.in[0][at], b = sample.in[0][at + kDim / 2];
        y[at] = a * std::cos(angle) - b * std::sin(angle);
        y[at + kDim / 2] = b * std::cos(angle) + a * std::sin(angle);
      }
  std::vector<Numbers> turned = sample.run();
  EXPECT_LT(relative_error(turned[0], y), kTolerance);

  Sample back = sample;
  back.example.attrs.set("inverse", int64_t{1});
  back.in[0] = turned[0];
  EXPECT_LT(relative_error(back.run()[0], sample.in[0]), kTolerance);
}

// Llama 3.1's published numbers: wavelengths above 8192 are stretched by 8, those under 2048 stay.
TEST(KernelReference, RopeStretchesLowFrequencies) {
  Sample sample{ops::rope,
                {"",
                 {f64({1, 2, 3 * 128})},
                 {{"heads", int64_t{1}},
                  {"kv_heads", int64_t{1}},
                  {"head_dim", int64_t{128}},
                  {"theta", 500000.0},
                  {"scale_factor", 8.0},
                  {"low_freq_factor", 1.0},
                  {"high_freq_factor", 4.0},
                  {"original_max_positions", int64_t{8192}}}}};
  for (size_t i = 0; i < 2 * 384; ++i) sample.in[0][i] = i % 128 < 64 ? 1 : 0;  // (1, 0) turns to (cos, sin)
  Numbers y = sample.run()[0];
  for (size_t j = 0; j < 64; ++j) {
    double plain = std::pow(500000.0, -static_cast<double>(j) / 64), wavelength = 2 * M_PI / plain;
    double angle = std::asin(y[384 + 64 + j]);
    if (wavelength < 2048)
      EXPECT_NEAR(std::cos(plain), y[384 + j], 1e-12);
    else if (wavelength > 8192)
      EXPECT_NEAR(angle * 8 / plain, 1, 1e-9);
    else
      EXPECT_TRUE(angle > plain / 8 && angle < plain) << j;
  }
}

struct AttentionShape {
  size_t batch, length, heads, kv_heads, dim;
  size_t width() const { return (heads + 2 * kv_heads) * dim; }
  size_t q(size_t b, size_t s, size_t h) const { return ((b * length + s) * (heads + 2 * kv_heads) + h) * dim; }
  size_t k(size_t b, size_t s, size_t h) const { return q(b, s, heads + h * kv_heads / heads); }
  size_t v(size_t b, size_t s, size_t h) const { return q(b, s, heads + kv_heads + h * kv_heads / heads); }
  size_t y(size_t b, size_t s, size_t h) const { return ((b * length + s) * heads + h) * dim; }
  Attrs attrs() const {
    return {{"heads", static_cast<int64_t>(heads)},
            {"kv_heads", static_cast<int64_t>(kv_heads)},
            {"head_dim", static_cast<int64_t>(dim)}};
  }
  TensorType qkv_type() const {
    return f64({static_cast<int64_t>(batch), static_cast<int64_t>(length), static_cast<int64_t>(width())});
  }
  TensorType y_type() const {
    return f64({static_cast<int64_t>(batch), static_cast<int64_t>(length), static_cast<int64_t>(heads * dim)});
  }
  TensorType lse_type() const {
    return f64({static_cast<int64_t>(batch), static_cast<int64_t>(heads), static_cast<int64_t>(length)});
  }
};

constexpr AttentionShape kShapes[] = {{2, 130, 4, 2, 8}, {1, 300, 2, 1, 5}, {2, 3, 3, 3, 6}, {1, 777, 2, 1, 4}};

double dot_at(const Numbers& a, size_t i, const Numbers& b, size_t j, size_t n) {
  double sum = 0;
  for (size_t d = 0; d < n; ++d) sum += a[i + d] * b[j + d];
  return sum;
}

struct AttentionTruth {
  Numbers y, lse, p;  // p[b][h][s][t]
};

AttentionTruth attention_truth(const AttentionShape& a, const Numbers& qkv) {
  AttentionTruth truth{Numbers(a.batch * a.length * a.heads * a.dim), Numbers(a.batch * a.heads * a.length),
                       Numbers(a.batch * a.heads * a.length * a.length)};
  for (size_t b = 0; b < a.batch; ++b)
    for (size_t h = 0; h < a.heads; ++h)
      for (size_t s = 0; s < a.length; ++s) {
        size_t row = (b * a.heads + h) * a.length + s;
        double sum = 0;
        for (size_t t = 0; t <= s; ++t)
          sum += truth.p[row * a.length + t] =
              std::exp(dot_at(qkv, a.q(b, s, h), qkv, a.k(b, t, h), a.dim) / std::sqrt(static_cast<double>(a.dim)));
        truth.lse[row] = std::log(sum);
        for (size_t t = 0; t <= s; ++t) {
          double p = truth.p[row * a.length + t] /= sum;
          for (size_t d = 0; d < a.dim; ++d) truth.y[a.y(b, s, h) + d] += p * qkv[a.v(b, t, h) + d];
        }
      }
  return truth;
}

TEST(KernelReference, Attention) {
  for (const AttentionShape& a : kShapes) {
    Sample sample{ops::attention, {"", {a.qkv_type()}, a.attrs()}};
    AttentionTruth truth = attention_truth(a, sample.in[0]);
    std::vector<Numbers> out = sample.run();
    EXPECT_LT(relative_error(out[0], truth.y), kTolerance);
    EXPECT_LT(relative_error(out[1], truth.lse), kTolerance);
  }
}

TEST(KernelReference, AttentionBackward) {
  for (const AttentionShape& a : kShapes) {
    Sample sample{ops::attention_backward, {"", {a.y_type(), a.qkv_type(), a.y_type(), a.lse_type()}, a.attrs()}};
    const Numbers &dy = sample.in[0], &qkv = sample.in[1];
    AttentionTruth truth = attention_truth(a, qkv);
    sample.in[2] = truth.y;
    sample.in[3] = truth.lse;
    Numbers dqkv(qkv.size());
    double scale = 1 / std::sqrt(static_cast<double>(a.dim));
    for (size_t b = 0; b < a.batch; ++b)
      for (size_t h = 0; h < a.heads; ++h)
        for (size_t s = 0; s < a.length; ++s) {
          const double* p = truth.p.data() + ((b * a.heads + h) * a.length + s) * a.length;
          double d = 0;  // Σ_t p·dp, which the kernel finds as Σ dy·y
          for (size_t t = 0; t <= s; ++t) d += p[t] * dot_at(dy, a.y(b, s, h), qkv, a.v(b, t, h), a.dim);
          for (size_t t = 0; t <= s; ++t) {
            double ds = p[t] * (dot_at(dy, a.y(b, s, h), qkv, a.v(b, t, h), a.dim) - d) * scale;
            for (size_t j = 0; j < a.dim; ++j) {
              dqkv[a.q(b, s, h) + j] += ds * qkv[a.k(b, t, h) + j];
              dqkv[a.k(b, t, h) + j] += ds * qkv[a.q(b, s, h) + j];
              dqkv[a.v(b, t, h) + j] += p[t] * dy[a.y(b, s, h) + j];
            }
          }
        }
    EXPECT_LT(relative_error(sample.run()[0], dqkv), kTolerance);
  }
}

// Scores far beyond what exp can hold, and a maximum that moves up from key block to key block.
TEST(KernelReference, AttentionSurvivesLargeScores) {
  AttentionShape a{1, 600, 1, 1, 4};
  Sample sample{ops::attention, {"", {a.qkv_type()}, a.attrs()}};
  for (size_t s = 0; s < a.length; ++s)
    for (size_t d = 0; d < a.dim; ++d) {
      sample.in[0][a.q(0, s, 0) + d] = 20;
      sample.in[0][a.k(0, s, 0) + d] = static_cast<double>(s) / 4;
    }
  KernelRun run{.def = sample.def,
                .attrs = sample.example.attrs,
                .types = sample.example.inputs,
                .inputs = sample.in,
                .real = DType::f32};
  Numbers y = run_kernel(run)[0];
  // Each key scores 10 above the one before: a query sees almost only the newest.
  for (size_t s = 1; s < a.length; ++s)
    for (size_t d = 0; d < a.dim; ++d) EXPECT_NEAR(y[a.y(0, s, 0) + d], sample.in[0][a.v(0, s, 0) + d], 2e-3);
}

// Generating in pieces (a prefill and single tokens) gives what one whole pass gives.
TEST(KernelReference, AttentionCachedAgreesWithAttention) {
  AttentionShape a{2, 800, 4, 2, 8};
  Sample whole{ops::attention, {"", {a.qkv_type()}, a.attrs()}};
  Numbers y = whole.run()[0];
  TensorType cache = f64({2, 2, 850, 8});
  Numbers keys(static_cast<size_t>(cache.shape.count()), std::numeric_limits<double>::quiet_NaN()), values = keys;
  size_t start = 0;
  for (size_t piece : {795, 1, 3, 1}) {
    Numbers qkv, expected;
    for (size_t b = 0; b < a.batch; ++b) {
      auto row = whole.in[0].begin() + static_cast<ptrdiff_t>(a.q(b, start, 0));
      qkv.insert(qkv.end(), row, row + static_cast<ptrdiff_t>(piece * a.width()));
      auto y_row = y.begin() + static_cast<ptrdiff_t>(a.y(b, start, 0));
      expected.insert(expected.end(), y_row, y_row + static_cast<ptrdiff_t>(piece * a.heads * a.dim));
    }
    KernelRun run{
        .def = ops::attention_cached,
        .attrs = a.attrs(),
        .types = {f64({2, static_cast<int64_t>(piece), static_cast<int64_t>(a.width())}), cache, cache, i32({})},
        .inputs = {qkv, keys, values, {static_cast<double>(start)}},
        .threads = 2};
    std::vector<Numbers> out = run_kernel(run);
    EXPECT_LT(relative_error(out[0], expected), kTolerance) << "from " << start;
    keys = out[1];
    values = out[2];
    start += piece;
  }
}

// A rank that holds half of the heads computes that half; attrs still count all heads.
TEST(KernelReference, AttentionOnPartOfTheHeads) {
  AttentionShape all{2, 70, 4, 2, 8}, half{2, 70, 2, 1, 8};
  Sample whole{ops::attention, {"", {all.qkv_type()}, all.attrs()}};
  Numbers part;
  for (size_t row = 0; row < 2 * 70; ++row)
    for (size_t head : {2, 3, 5, 7})  // q heads 2 and 3, k head 1, v head 1
      for (size_t d = 0; d < 8; ++d) part.push_back(whole.in[0][row * all.width() + head * 8 + d]);
  Numbers y = whole.run()[0], expected;
  for (size_t row = 0; row < 2 * 70; ++row)
    for (size_t d = 16; d < 32; ++d) expected.push_back(y[row * 32 + d]);
  // The definition's shape function counts global heads, so y's local shape is given by the half's attrs.
  KernelRun run{.def = ops::attention,
                .attrs = half.attrs(),
                .types = {half.qkv_type()},
                .inputs = {part},
                .kernel_attrs = all.attrs()};
  EXPECT_LT(relative_error(run_kernel(run)[0], expected), kTolerance);
}

TEST(KernelReference, HeadLossBackward) {
  constexpr size_t kRows = 3150, kHidden = 9, kVocabulary = 41;
  constexpr double kZ = 0.02;
  Sample sample{ops::head_loss_backward,
                {"",
                 {f64({3, 1050, kHidden}), f64({kVocabulary, kHidden}), i32({3, 1050}), f64({})},
                 {{"z_loss", kZ}},
                 kVocabulary}};
  const Numbers &x = sample.in[0], &w = sample.in[1];
  for (size_t row = 0; row < kRows; row += 7) sample.in[2][row] = row % 2 == 0 ? -1 : -100;
  double dloss = sample.in[3][0], loss = 0;
  Numbers dw(w.size()), dx(x.size());
  for (size_t row = 0; row < kRows; ++row) {
    if (sample.in[2][row] < 0) continue;
    size_t target = static_cast<size_t>(sample.in[2][row]);
    Numbers logits;
    double sum = 0;
    for (size_t v = 0; v < kVocabulary; ++v) {
      logits.push_back(dot_at(x, row * kHidden, w, v * kHidden, kHidden));
      sum += std::exp(logits[v]);
    }
    double lse = std::log(sum);
    loss += lse - logits[target] + kZ * lse * lse;
    for (size_t v = 0; v < kVocabulary; ++v) {
      double dl = dloss * (std::exp(logits[v] - lse) * (1 + 2 * kZ * lse) - (v == target ? 1 : 0));
      for (size_t h = 0; h < kHidden; ++h) {
        dw[v * kHidden + h] += dl * x[row * kHidden + h];
        dx[row * kHidden + h] += dl * w[v * kHidden + h];
      }
    }
  }
  std::vector<Numbers> out = sample.run();
  EXPECT_LT(relative_error(out[0], dw), kTolerance);
  EXPECT_LT(relative_error(out[1], dx), kTolerance);
  EXPECT_LT(relative_error(out[2], {loss}), kTolerance);

  Sample forward{ops::head_loss, sample.example};
  forward.example.inputs.pop_back();
  forward.in = {sample.in[0], sample.in[1], sample.in[2]};
  EXPECT_LT(relative_error(forward.run()[0], {loss}), kTolerance);
}

Example adamw_example() {
  return {"",
          {f64({3, 16411}), f64({3, 16411}), f64({3, 16411}), f64({3, 16411}), f64({}), f64({}), i32({})},
          {{"beta1", 0.9}, {"beta2", 0.95}, {"eps", 1e-3}, {"weight_decay", 0.1}}};
}

TEST(KernelReference, Adamw) {
  Sample sample{ops::adamw, adamw_example()};
  sample.in[4] = {0.02};
  sample.in[5] = {0.5};
  sample.in[6] = {3};
  std::vector<Numbers> out = sample.run();
  for (size_t i = 0; i < sample.in[0].size(); ++i) {
    double p = sample.in[0][i], g = 0.5 * sample.in[1][i];
    double m = 0.9 * sample.in[2][i] + 0.1 * g, v = 0.95 * sample.in[3][i] + 0.05 * g * g;
    double m_hat = m / (1 - std::pow(0.9, 3)), v_hat = v / (1 - std::pow(0.95, 3));
    EXPECT_NEAR(out[0][i], p - 0.02 * (m_hat / (std::sqrt(v_hat) + 1e-3) + 0.1 * p), 1e-12);
    EXPECT_NEAR(out[1][i], m, 1e-14);
    EXPECT_NEAR(out[2][i], v, 1e-14);
  }
}

// Gradients about as large as eps, where it decides the step: added outside of the root, to the corrected moments, with
// the decay taken off the old weight. Steps 1, 2 and 1000, with and without bias that counts.
TEST(KernelReference, AdamwWithGradientsAsSmallAsEps) {
  constexpr double kLr = 0.01, kBeta1 = 0.9, kBeta2 = 0.999, kEps = 1e-8, kDecay = 0.1;
  for (int step : {1, 2, 1000}) {
    Sample sample{ops::adamw, adamw_example()};
    sample.example.attrs = {{"beta1", kBeta1}, {"beta2", kBeta2}, {"eps", kEps}, {"weight_decay", kDecay}};
    sample.in[4] = {kLr}, sample.in[5] = {1}, sample.in[6] = {static_cast<double>(step)};
    size_t n = sample.in[0].size();
    for (size_t i = 0; i < n; ++i) {
      double size = std::pow(10.0, -10 + 4 * static_cast<double>(i % 97) / 96);  // 1e-10 to 1e-6
      sample.in[1][i] = static_cast<float>(sample.in[1][i] < 0 ? -size : size);
      sample.in[2][i] = step == 1 ? 0 : static_cast<float>(sample.in[1][i] / 3);
      sample.in[3][i] = step == 1 ? 0 : static_cast<float>(size * size / 5);
    }
    Numbers moved(n), expected(n), m(n), v(n);
    for (size_t i = 0; i < n; ++i) {
      double p = sample.in[0][i], g = sample.in[1][i];
      m[i] = kBeta1 * sample.in[2][i] + (1 - kBeta1) * g;
      v[i] = kBeta2 * sample.in[3][i] + (1 - kBeta2) * g * g;
      double m_hat = m[i] / (1 - std::pow(kBeta1, step)), v_hat = v[i] / (1 - std::pow(kBeta2, step));
      expected[i] = -kLr * (m_hat / (std::sqrt(v_hat) + kEps) + kDecay * p);
    }
    for (DType real : {DType::f64, DType::f32}) {
      std::vector<Numbers> out = run_kernel({.def = sample.def,
                                             .attrs = sample.example.attrs,
                                             .types = sample.example.inputs,
                                             .inputs = sample.in,
                                             .real = real,
                                             .threads = 2});
      for (size_t i = 0; i < n; ++i) moved[i] = out[0][i] - sample.in[0][i];
      bool exact = real == DType::f64;  // else the step is rounded to the weight's own precision
      EXPECT_LT(relative_error(moved, expected), exact ? 1e-12 : 1e-4) << "step " << step;
      EXPECT_LT(relative_error(out[1], m), exact ? 1e-13 : 1e-6) << "step " << step;
      EXPECT_LT(relative_error(out[2], v), exact ? 1e-13 : 2e-5)
          << "step " << step;  // 1 − beta2 in f32 has lost three digits
    }
  }
}

TEST(KernelReference, AdamwSkipsWhenScaleIsZero) {
  Sample sample{ops::adamw, adamw_example()};
  sample.in[5] = {0};
  sample.in[1][3] = std::numeric_limits<double>::quiet_NaN();
  std::vector<Numbers> out = sample.run();
  EXPECT_EQ(out[0], sample.in[0]);
  EXPECT_EQ(out[1], sample.in[2]);
  EXPECT_EQ(out[2], sample.in[3]);
}

TEST(KernelReference, ClipScale) {
  auto clip = [](double limit, Numbers squares) {
    Sample sample{ops::clip_scale, {"", TensorTypes(squares.size(), f64({})), {{"clip", limit}}}};
    for (size_t i = 0; i < squares.size(); ++i) sample.in[i] = {squares[i]};
    std::vector<Numbers> out = sample.run();
    return Numbers{out[0][0], out[1][0]};
  };
  EXPECT_EQ(clip(1, {9, 16}), (Numbers{5, 0.2}));
  EXPECT_EQ(clip(10, {9, 16}), (Numbers{5, 1}));
  EXPECT_EQ(clip(0, {9, 16}), (Numbers{5, 1}));
  EXPECT_EQ(clip(1, {0}), (Numbers{0, 1}));
  EXPECT_EQ(clip(1, {std::numeric_limits<double>::infinity()})[1], 0);
  EXPECT_EQ(clip(0, {std::numeric_limits<double>::quiet_NaN(), 1})[1], 0);
}

TEST(KernelReference, LimitNorm) {
  auto kept = [](double scale, double norm, double limit) {
    Sample sample{ops::limit_norm, {"", {f64({}), f64({}), f64({})}, {}}};
    sample.in = {{scale}, {norm}, {limit}};
    return sample.run()[0][0];
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(kept(0.5, 3, 4), 0.5);
  EXPECT_EQ(kept(0.5, 4, 4), 0.5);
  EXPECT_EQ(kept(0.5, 5, 4), 0);
  EXPECT_EQ(kept(0.5, 5, kInfinity), 0.5);
  EXPECT_EQ(kept(0, kInfinity, kInfinity), 0);
  EXPECT_EQ(kept(0, std::numeric_limits<double>::quiet_NaN(), kInfinity), 0);
}

TEST(KernelReference, ElementwiseFunctions) {
  Sample gelu{ops::gelu, {"", {f64({1, 3, 16411})}, {}}},
      gelu_back{ops::gelu_backward, {"", {f64({3, 16411}), f64({3, 16411})}, {}}};
  Sample swish{ops::swish, {"", {f64({1, 3, 16411})}, {{"beta", 1.702}}}},
      swish_back{ops::swish_backward, {"", {f64({3, 16411}), f64({3, 16411})}, {{"beta", 1.702}}}};
  Sample swiglu{ops::swiglu, {"", {f64({2, 250, 2 * 50})}, {}}};
  Sample swiglu_back{ops::swiglu_backward, {"", {f64({2, 250, 50}), f64({2, 250, 2 * 50})}, {}}};
  auto gelu_of = [](double x) { return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); };
  auto silu_of = [](double x) { return x / (1 + std::exp(-x)); };
  auto slope = [](auto f, double x) { return (f(x + 1e-6) - f(x - 1e-6)) / 2e-6; };
  auto quick_gelu_of = [](double x) { return x / (1 + std::exp(-1.702 * x)); };
  Numbers q = swish.run()[0], dq = swish_back.run()[0];
  for (size_t i = 0; i < q.size(); ++i) {
    EXPECT_NEAR(q[i], quick_gelu_of(swish.in[0][i]), 1e-13);
    EXPECT_NEAR(dq[i], swish_back.in[0][i] * slope(quick_gelu_of, swish_back.in[1][i]), 1e-8);
  }
  Numbers y = gelu.run()[0], dx = gelu_back.run()[0];
  for (size_t i = 0; i < y.size(); ++i) {
    EXPECT_NEAR(y[i], gelu_of(gelu.in[0][i]), 1e-13);
    EXPECT_NEAR(dx[i], gelu_back.in[0][i] * slope(gelu_of, gelu_back.in[1][i]), 1e-8);
  }
  Numbers s = swiglu.run()[0], ds = swiglu_back.run()[0];
  for (size_t row = 0; row < 500; ++row)
    for (size_t j = 0; j < 50; ++j) {
      EXPECT_NEAR(s[row * 50 + j], silu_of(swiglu.in[0][row * 100 + j]) * swiglu.in[0][row * 100 + 50 + j], 1e-13);
      double dy = swiglu_back.in[0][row * 50 + j];
      double gate = swiglu_back.in[1][row * 100 + j], up = swiglu_back.in[1][row * 100 + 50 + j];
      EXPECT_NEAR(ds[row * 100 + j], dy * up * slope(silu_of, gate), 1e-8);
      EXPECT_NEAR(ds[row * 100 + 50 + j], dy * silu_of(gate), 1e-13);
    }
}

// Single precision at the ends of the range, where a hurried exp or tanh gives NaN.
TEST(KernelReference, ElementwiseFunctionsAtExtremes) {
  Numbers extremes{-1e30, -1000, -90, -88, -20, -1e-20, 0, 1e-20, 20, 88, 90, 1000, 1e12};
  int64_t n = static_cast<int64_t>(extremes.size());
  for (const OpDef* def :
       {&ops::gelu, &ops::gelu_backward, &ops::swiglu, &ops::swiglu_backward, &ops::swish, &ops::swish_backward}) {
    Numbers ones(extremes.size(), 1.0), both = extremes;
    both.insert(both.end(), ones.begin(), ones.end());
    bool gated = def == &ops::swiglu || def == &ops::swiglu_backward;
    Attrs attrs;
    if (std::ranges::count(def->attrs, "beta") > 0) attrs.set("beta", 1.702);
    KernelRun run{.def = *def, .attrs = attrs, .types = {}, .inputs = {}, .real = DType::f32};
    if (def == &ops::gelu_backward || def == &ops::swiglu_backward || def == &ops::swish_backward) {
      run.types.push_back(f64({1, 1, n}));
      run.inputs.push_back(ones);
    }
    run.types.push_back(f64({1, 1, gated ? 2 * n : n}));
    run.inputs.push_back(gated ? both : extremes);
    Numbers single = run_kernel(run)[0];
    for (double x : single) EXPECT_TRUE(std::isfinite(x)) << def->name;
  }
}

TEST(KernelReference, EmbeddingsAndPositions) {
  constexpr size_t kLength = 130, kRows = 2 * kLength, kWidth = 200, kTokens = 300, kPositions = 310;
  TensorType rows = f64({2, kLength, kWidth}), table = f64({kTokens, kWidth}), positions = f64({kPositions, kWidth});
  Sample embedding{ops::embedding, {"", {i32({2, kLength}), table}, {}, kTokens}};
  Sample scatter{ops::embedding_backward, {"", {rows, i32({2, kLength}), table}, {}, 50}};
  Sample position{ops::position_embedding, {"", {rows, positions, i32({})}, {}, 20}};
  Sample position_back{ops::position_embedding_backward, {"", {rows, positions}, {}}};
  Sample take{ops::take_position, {"", {rows, i32({})}, {}, kLength}};
  Numbers y = embedding.run()[0], dw(kTokens * kWidth), placed = position.run()[0], dp(kPositions * kWidth),
          taken = take.run()[0];
  for (size_t row = 0; row < kRows; ++row)
    for (size_t j = 0; j < kWidth; ++j) {
      EXPECT_EQ(y[row * kWidth + j], embedding.in[1][static_cast<size_t>(embedding.in[0][row]) * kWidth + j]);
      dw[static_cast<size_t>(scatter.in[1][row]) * kWidth + j] += scatter.in[0][row * kWidth + j];
      size_t at = row % kLength + static_cast<size_t>(position.in[2][0]);
      EXPECT_EQ(placed[row * kWidth + j], position.in[0][row * kWidth + j] + position.in[1][at * kWidth + j]);
      dp[row % kLength * kWidth + j] += position_back.in[0][row * kWidth + j];
    }
  EXPECT_LT(relative_error(scatter.run()[0], dw), kTolerance);
  EXPECT_LT(relative_error(position_back.run()[0], dp), kTolerance);
  for (size_t b = 0; b < 2; ++b)
    for (size_t j = 0; j < kWidth; ++j)
      EXPECT_EQ(taken[b * kWidth + j], take.in[0][(b * kLength + static_cast<size_t>(take.in[1][0])) * kWidth + j]);
}

}  // namespace
}  // namespace sextant
