#include "exec/cpu/kernels/vector_math.h"

#include <algorithm>
#include <limits>

// Compiled once per instruction set of the processor family; the best one is chosen when the program runs.
// SVE is left out: arrays of its vectors, whose size is unknown at compile time, cannot be made.
// Highway's emulation of vectors, there only for processors older than SSSE3, is allowed in spite of a compiler bug:
// its stand-in has one lane, which this file could not use.
#define HWY_BROKEN_EMU128 0
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "exec/cpu/kernels/vector_math.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Lanes = hn::ScalableTag<float>;
using Vector = hn::Vec<Lanes>;

constexpr Lanes kTag;
constexpr int64_t kWidth = hn::MaxLanes(Lanes());

HWY_INLINE Vector all(float x) {
  return hn::Set(kTag, x);
}
HWY_INLINE Vector load(const float* x) {
  return hn::LoadU(kTag, x);
}

// e^x = 2^n · e^r with |r| <= ln(2)/2, e^r = 1 + r + r²·q(r), q the polynomial of least relative error (3e-9, found by
// Lawson's iteration). Within 2 units in the last place up to 88.3, then rougher, then infinity; underflows to zero
// where the result would no longer be normal.
HWY_INLINE Vector exp(Vector x) {
  const hn::RebindToSigned<Lanes> integers;
  // Adding 1.5·2^23 rounds to an integer and leaves it in the lowest bits; 127 more make it the exponent's bits.
  const Vector rounder = all(12582912.0f + 127.0f);
  Vector rounded = hn::MulAdd(x, all(1.44269504f), rounder);
  rounded = hn::Min(all(12582912.0f + 254.0f), rounded);
  Vector n = hn::Sub(rounded, rounder);
  Vector power = hn::BitCast(kTag, hn::ShiftLeft<23>(hn::BitCast(integers, rounded)));
  // ln(2) in two parts, so that r keeps its last bits.
  Vector r = hn::NegMulAdd(n, all(-2.12194440e-4f), hn::NegMulAdd(n, all(0.693359375f), x));
  Vector r2 = hn::Mul(r, r);
  Vector low = hn::MulAdd(r, all(1.6666520399e-1f), all(4.9999993432e-1f));
  Vector high = hn::MulAdd(r, all(8.3687451271e-3f), all(4.1668390790e-2f));
  high = hn::MulAdd(r2, all(1.3814539880e-3f), high);
  Vector q = hn::MulAdd(r2, high, low);
  Vector e = hn::MulAdd(r2, q, hn::Add(r, all(1.0f)));
  return hn::IfThenZeroElse(hn::Lt(x, all(-87.3f)), hn::Mul(e, power));
}

HWY_INLINE Vector sigmoid(Vector x) {
  return hn::Div(all(1.0f), hn::Add(all(1.0f), exp(hn::Neg(x))));
}

// Applies `op` to vectors of the inputs and writes its results; what is left over goes through a padded copy.
template <int kIn, int kOut, class Op>
HWY_INLINE void map(const float* const (&in)[kIn], float* const (&out)[kOut], int64_t n, const Op& op) {
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    Vector from[kIn], to[kOut];  // not shared with the rest below: so they stay in registers
    for (int k = 0; k < kIn; ++k) from[k] = load(in[k] + i);
    op.apply(from, to);
    for (int k = 0; k < kOut; ++k) hn::StoreU(to[k], kTag, out[k] + i);
  }
  if (i == n) return;
  Vector from[kIn], to[kOut];
  HWY_ALIGN float rest[kWidth] = {};
  for (int k = 0; k < kIn; ++k) {
    std::copy(in[k] + i, in[k] + n, rest);
    from[k] = load(rest);
  }
  op.apply(from, to);
  for (int k = 0; k < kOut; ++k) {
    hn::StoreU(to[k], kTag, rest);
    std::copy(rest, rest + (n - i), out[k] + i);
  }
}

// Σ term(i), in four running sums that hide the latency of an addition.
template <int kIn, class Term>
HWY_INLINE float add_up(const float* const (&in)[kIn], int64_t n, const Term& term) {
  Vector totals[4] = {all(0), all(0), all(0), all(0)};
  int64_t i = 0;
  for (; i + 4 * kWidth <= n; i += 4 * kWidth)
    for (int part = 0; part < 4; ++part) {
      Vector from[kIn];
      for (int k = 0; k < kIn; ++k) from[k] = load(in[k] + i + part * kWidth);
      totals[part] = term.add(from, totals[part]);
    }
  for (; i < n; i += kWidth) {
    Vector from[kIn];
    for (int k = 0; k < kIn; ++k) {
      HWY_ALIGN float rest[kWidth] = {};
      std::copy(in[k] + i, in[k] + std::min(n, i + kWidth), rest);
      from[k] = load(rest);
    }
    totals[0] = term.add(from, totals[0]);
  }
  Vector total = hn::Add(hn::Add(totals[0], totals[1]), hn::Add(totals[2], totals[3]));
  return hn::GetLane(hn::SumOfLanes(kTag, total));
}

struct ProductTerm {
  HWY_INLINE Vector add(const Vector (&x)[2], Vector total) const { return hn::MulAdd(x[0], x[1], total); }
};

float dot(const float* a, const float* b, int64_t n) {
  return add_up<2>({a, b}, n, ProductTerm());
}

// Where a row ends, a and b are padded with zeros, so it does not matter that c − shift is not zero there.
struct ShiftedTerm {
  float shift;
  HWY_INLINE Vector add(const Vector (&x)[3], Vector total) const {
    return hn::MulAdd(hn::Mul(x[0], x[1]), hn::Sub(x[2], all(shift)), total);
  }
};

float dot_shifted(const float* a, const float* b, const float* c, float shift, int64_t n) {
  return add_up<3>({a, b, c}, n, ShiftedTerm{shift});
}

struct PlainTerm {
  HWY_INLINE Vector add(const Vector (&x)[1], Vector total) const { return hn::Add(x[0], total); }
};

float sum(const float* x, int64_t n) {
  return add_up<1>({x}, n, PlainTerm());
}

struct AddScaled {
  float scale;
  HWY_INLINE void apply(const Vector (&in)[2], Vector (&out)[1]) const {
    out[0] = hn::MulAdd(in[0], all(scale), in[1]);
  }
};

void add_scaled(const float* x, float scale, float* y, int64_t n) {
  map<2, 1>({x, y}, {y}, n, AddScaled{scale});
}

float largest(const float* x, int64_t n) {
  Vector best[4] = {all(x[0]), all(x[0]), all(x[0]), all(x[0])};
  int64_t i = 0;
  for (; i + 4 * kWidth <= n; i += 4 * kWidth)
    for (int part = 0; part < 4; ++part) best[part] = hn::Max(best[part], load(x + i + part * kWidth));
  float most = hn::GetLane(hn::MaxOfLanes(kTag, hn::Max(hn::Max(best[0], best[1]), hn::Max(best[2], best[3]))));
  for (; i < n; ++i) most = std::max(most, x[i]);
  return most;
}

double square_sum(const float* x, int64_t n) {
  const hn::Repartition<double, Lanes> doubles;
  const hn::Half<Lanes> half;
  auto low = hn::Zero(doubles), high = low;
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    Vector v = load(x + i);
    auto a = hn::PromoteTo(doubles, hn::LowerHalf(half, v)), b = hn::PromoteTo(doubles, hn::UpperHalf(half, v));
    low = hn::MulAdd(a, a, low);
    high = hn::MulAdd(b, b, high);
  }
  double total = hn::GetLane(hn::SumOfLanes(doubles, hn::Add(low, high)));
  for (; i < n; ++i) total += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return total;
}

float exp_and_sum(float* x, int64_t n, float scale, float shift) {
  const Vector factor = all(scale), less = all(shift);
  Vector totals[2] = {all(0), all(0)};
  int64_t i = 0;
  for (; i + 2 * kWidth <= n; i += 2 * kWidth)
    for (int part = 0; part < 2; ++part) {
      float* at = x + i + part * kWidth;
      Vector e = exp(hn::MulSub(factor, load(at), less));
      hn::StoreU(e, kTag, at);
      totals[part] = hn::Add(totals[part], e);
    }
  for (; i < n; i += kWidth) {
    int64_t count = std::min(kWidth, n - i);
    HWY_ALIGN float rest[kWidth];
    std::fill_n(rest, kWidth, -std::numeric_limits<float>::infinity());  // adds nothing to the sum
    for (int64_t k = 0; k < count; ++k) rest[k] = scale * x[i + k] - shift;
    Vector e = exp(load(rest));
    totals[0] = hn::Add(totals[0], e);
    hn::StoreU(e, kTag, rest);
    std::copy_n(rest, count, x + i);
  }
  return hn::GetLane(hn::SumOfLanes(kTag, hn::Add(totals[0], totals[1])));
}

struct Turn {
  HWY_INLINE void apply(const Vector (&in)[4], Vector (&out)[2]) const {
    Vector a = in[0], b = in[1], cosine = in[2], sine = in[3];
    out[0] = hn::NegMulAdd(b, sine, hn::Mul(a, cosine));
    out[1] = hn::MulAdd(a, sine, hn::Mul(b, cosine));
  }
};

void turn_heads(const float* x, const float* cosines, float* y, int64_t half, int64_t heads) {
  for (int64_t head = 0; head < heads; ++head, x += 2 * half, y += 2 * half)
    map<4, 2>({x, x + half, cosines, cosines + half}, {y, y + half}, half, Turn());
}

// (1 + tanh(u))/2 is the logistic function of 2u.
HWY_INLINE Vector gelu_argument(Vector x) {
  Vector cubic = hn::MulAdd(hn::Mul(x, x), all(2 * kGeluRoot * kGeluCubic), all(2 * kGeluRoot));
  return hn::Mul(x, cubic);
}

struct Gelu {
  HWY_INLINE void apply(const Vector (&x)[1], Vector (&y)[1]) const {
    y[0] = hn::Div(x[0], hn::Add(all(1.0f), exp(hn::Neg(gelu_argument(x[0])))));
  }
};

void gelu_row(const float* x, float* y, int64_t n) {
  map<1, 1>({x}, {y}, n, Gelu());
}

struct GeluBackward {
  HWY_INLINE void apply(const Vector (&in)[2], Vector (&out)[1]) const {
    // Beyond ±100 the slope is 1 or 0 to the last bit, and x² could overflow. (Min and Max would swallow NaN.)
    Vector x = hn::IfThenElse(hn::Gt(hn::Abs(in[1]), all(100.0f)), hn::CopySign(all(100.0f), in[1]), in[1]);
    Vector s = sigmoid(gelu_argument(x));
    Vector slope = hn::MulAdd(hn::Mul(x, x), all(6 * kGeluRoot * kGeluCubic), all(2 * kGeluRoot));
    Vector bend = hn::Mul(hn::Mul(x, slope), hn::Mul(s, hn::Sub(all(1.0f), s)));
    out[0] = hn::Mul(in[0], hn::Add(s, bend));
  }
};

void gelu_backward_row(const float* dy, const float* x, float* dx, int64_t n) {
  map<2, 1>({dy, x}, {dx}, n, GeluBackward());
}

// Standard normal distribution at x: its density, and the probability of a value below x.
struct Normal {
  Vector density, below;
};

// erfc(z) = exp(−z²)·p(t), t = 1/(1 + 0.3275911·z), for z >= 0 within 1.5e-7 (Abramowitz and Stegun, 7.1.26).
HWY_INLINE Normal normal_at(Vector x) {
  Vector bell = exp(hn::Mul(hn::Mul(x, x), all(-0.5f)));
  Vector t = hn::Div(all(1.0f), hn::MulAdd(hn::Abs(x), all(0.3275911f * 0.70710678f), all(1.0f)));
  Vector p = hn::MulAdd(t, all(1.061405429f), all(-1.453152027f));
  p = hn::MulAdd(t, p, all(1.421413741f));
  p = hn::MulAdd(t, p, all(-0.284496736f));
  p = hn::MulAdd(t, p, all(0.254829592f));
  Vector tail = hn::Mul(hn::Mul(hn::Mul(t, p), bell), all(0.5f));
  Vector below = hn::IfThenElse(hn::Lt(x, all(0)), tail, hn::Sub(all(1.0f), tail));
  return {hn::Mul(bell, all(static_cast<float>(kNormalDensity))), below};
}

struct GeluErf {
  HWY_INLINE void apply(const Vector (&x)[1], Vector (&y)[1]) const { y[0] = hn::Mul(x[0], normal_at(x[0]).below); }
};

void gelu_erf_row(const float* x, float* y, int64_t n) {
  map<1, 1>({x}, {y}, n, GeluErf());
}

struct GeluErfBackward {
  HWY_INLINE void apply(const Vector (&in)[2], Vector (&out)[1]) const {
    Normal normal = normal_at(in[1]);
    out[0] = hn::Mul(in[0], hn::MulAdd(in[1], normal.density, normal.below));
  }
};

void gelu_erf_backward_row(const float* dy, const float* x, float* dx, int64_t n) {
  map<2, 1>({dy, x}, {dx}, n, GeluErfBackward());
}

struct Swiglu {
  HWY_INLINE void apply(const Vector (&in)[2], Vector (&y)[1]) const {
    Vector silu = hn::Div(in[0], hn::Add(all(1.0f), exp(hn::Neg(in[0]))));
    y[0] = hn::Mul(silu, in[1]);
  }
};

void swiglu_row(const float* gate, const float* up, float* y, int64_t n) {
  map<2, 1>({gate, up}, {y}, n, Swiglu());
}

struct SwigluBackward {
  HWY_INLINE void apply(const Vector (&in)[3], Vector (&out)[2]) const {
    Vector dy = in[0], gate = in[1], up = in[2];
    Vector s = sigmoid(gate), silu = hn::Mul(gate, s);
    // silu' = s·(1 + gate·(1 − s)) = s + silu·(1 − s)
    out[0] = hn::Mul(hn::Mul(dy, up), hn::MulAdd(silu, hn::Sub(all(1.0f), s), s));
    out[1] = hn::Mul(dy, silu);
  }
};

void swiglu_backward_row(const SwigluRow<float>& row, int64_t n) {
  map<3, 2>({row.dy, row.gate, row.up}, {row.dgate, row.dup}, n, SwigluBackward());
}

struct Swish {
  float beta;
  HWY_INLINE void apply(const Vector (&x)[1], Vector (&y)[1]) const {
    y[0] = hn::Div(x[0], hn::Add(all(1.0f), exp(hn::Mul(x[0], all(-beta)))));
  }
};

void swish_row(const float* x, float* y, float beta, int64_t n) {
  map<1, 1>({x}, {y}, n, Swish{beta});
}

struct SwishBackward {
  float beta;
  HWY_INLINE void apply(const Vector (&in)[2], Vector (&out)[1]) const {
    Vector s = sigmoid(hn::Mul(in[1], all(beta))), y = hn::Mul(in[1], s);
    out[0] = hn::Mul(in[0], hn::MulAdd(y, hn::Mul(all(beta), hn::Sub(all(1.0f), s)), s));
  }
};

void swish_backward_row(const float* dy, const float* x, float* dx, float beta, int64_t n) {
  map<2, 1>({dy, x}, {dx}, n, SwishBackward{beta});
}

struct Adamw {
  const AdamwRow<float>& row;
  HWY_INLINE void apply(const Vector (&in)[4], Vector (&out)[3]) const {
    Vector g = hn::Mul(in[1], all(row.scale));
    Vector m = hn::MulAdd(in[2], all(row.beta1), hn::Mul(g, all(1 - row.beta1)));
    Vector v = hn::MulAdd(in[3], all(row.beta2), hn::Mul(hn::Mul(g, g), all(1 - row.beta2)));
    Vector step = hn::Div(hn::Mul(m, all(row.rate)), hn::MulAdd(hn::Sqrt(v), all(row.root), all(row.eps)));
    out[0] = hn::MulSub(in[0], all(row.keep), step);
    out[1] = m;
    out[2] = v;
  }
};

void adamw_row(const AdamwRow<float>& row, int64_t n) {
  map<4, 3>({row.p, row.g, row.m, row.v}, {row.p, row.m, row.v}, n, Adamw{row});
}

}  // namespace sextant::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sextant::cpu {

namespace {
HWY_EXPORT(dot);
HWY_EXPORT(dot_shifted);
HWY_EXPORT(sum);
HWY_EXPORT(add_scaled);
HWY_EXPORT(largest);
HWY_EXPORT(square_sum);
HWY_EXPORT(exp_and_sum);
HWY_EXPORT(turn_heads);
HWY_EXPORT(gelu_row);
HWY_EXPORT(gelu_backward_row);
HWY_EXPORT(gelu_erf_row);
HWY_EXPORT(gelu_erf_backward_row);
HWY_EXPORT(swiglu_row);
HWY_EXPORT(swiglu_backward_row);
HWY_EXPORT(swish_row);
HWY_EXPORT(swish_backward_row);
HWY_EXPORT(adamw_row);
}  // namespace

float dot(const float* a, const float* b, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(dot)(a, b, n);
}
float dot_shifted(const float* a, const float* b, const float* c, float shift, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(dot_shifted)(a, b, c, shift, n);
}
float sum(const float* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(sum)(x, n);
}
void add_scaled(const float* x, float scale, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(add_scaled)(x, scale, y, n);
}
float largest(const float* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(largest)(x, n);
}
double square_sum(const float* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(square_sum)(x, n);
}
float exp_and_sum(float* x, int64_t n, float scale, float shift) {
  return HWY_DYNAMIC_DISPATCH(exp_and_sum)(x, n, scale, shift);
}
void turn_heads(const float* x, const float* cosines, float* y, int64_t half, int64_t heads) {
  HWY_DYNAMIC_DISPATCH(turn_heads)(x, cosines, y, half, heads);
}
void gelu_row(const float* x, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(gelu_row)(x, y, n);
}
void gelu_backward_row(const float* dy, const float* x, float* dx, int64_t n) {
  HWY_DYNAMIC_DISPATCH(gelu_backward_row)(dy, x, dx, n);
}
void gelu_erf_row(const float* x, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(gelu_erf_row)(x, y, n);
}
void gelu_erf_backward_row(const float* dy, const float* x, float* dx, int64_t n) {
  HWY_DYNAMIC_DISPATCH(gelu_erf_backward_row)(dy, x, dx, n);
}
void swiglu_row(const float* gate, const float* up, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(swiglu_row)(gate, up, y, n);
}
void swiglu_backward_row(const SwigluRow<float>& row, int64_t n) {
  HWY_DYNAMIC_DISPATCH(swiglu_backward_row)(row, n);
}
void swish_row(const float* x, float* y, float beta, int64_t n) {
  HWY_DYNAMIC_DISPATCH(swish_row)(x, y, beta, n);
}
void swish_backward_row(const float* dy, const float* x, float* dx, float beta, int64_t n) {
  HWY_DYNAMIC_DISPATCH(swish_backward_row)(dy, x, dx, beta, n);
}
void adamw_row(const AdamwRow<float>& row, int64_t n) {
  HWY_DYNAMIC_DISPATCH(adamw_row)(row, n);
}

}  // namespace sextant::cpu
#endif
