// The search for the best shape against a full sweep: on a modelled device whose glances mislead, on surfaces with
// ridges and dents, and when it is stopped.
#include "bench/shape_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "bench/gemm.h"

namespace sextant {
namespace {

constexpr Repeat kSweep{.least = 10, .most = 2000, .seconds = 0.004, .warm_seconds = 0.02};  // as `bench gemm` does it
constexpr double kFlush = 70e-6;  // seconds that clearing the caches takes before each call

// Waves of 128×256 tiles over 132 units, a ramp over the depth, a clock that gives way to power: the longer a GEMM
// is beside the clearing of caches, and the longer it has been going on.
class ModelledDevice {
 public:
  explicit ModelledDevice(uint64_t seed) : random_(seed, "noise") {}

  double true_rate(const GemmDims& s) const { return at_full_clock(s) * (1 - slowdown(s)); }

  double timed_rate(const GemmDims& s, double seconds) {
    double heated = 1 - std::exp(-seconds / 0.02), noise = std::max(0.005, 0.03 * std::sqrt(kGlanceSeconds / seconds));
    cost_s += cost_of(s, search_repeat(seconds, seconds > kGlanceSeconds ? s.flops() / true_rate(s) : 0));
    return at_full_clock(s) * (1 - heated * slowdown(s)) * (1 + noise * random_.normal(asked_++));
  }

  // Seconds of the whole: room and operands, warming up, calls in pieces of a twentieth of a second.
  double cost_of(const GemmDims& s, const Repeat& repeat) const {
    double bytes = 2.0 * static_cast<double>(s.m * s.k + s.n * s.k + s.m * s.n), setup = 3e-3 + bytes / 1e11;
    double call = s.flops() / true_rate(s) + kFlush, warm = std::min(10 * call, repeat.warm_seconds + call);
    double together = std::clamp(std::floor(0.05 / call), 1.0, 100.0), calls = 0;
    while (calls < repeat.most && (calls < repeat.least || calls * (call - kFlush) < repeat.seconds))
      calls += std::min(together, repeat.most - calls);
    return setup + warm + calls * call;
  }

  double cost_s = 0;

 private:
  static double at_full_clock(const GemmDims& s) {
    double tiles = std::ceil(static_cast<double>(s.m) / 128) * std::ceil(static_cast<double>(s.n) / 256), units = 132;
    double full = tiles / units / std::ceil(tiles / units), depth = static_cast<double>(s.k);
    return 900e12 * full * depth / (depth + 400);
  }
  static double slowdown(const GemmDims& s) {
    double call = s.flops() / at_full_clock(s), duty = call / (call + kFlush);
    return 0.16 * duty * duty;
  }

  Random random_;
  uint64_t asked_ = 0;
};

template <class Visit>
void sweep(const ShapeSpace& space, const Visit& visit) {
  for (int64_t m = space.step; m <= space.most; m += space.step)
    for (int64_t n = space.step; n <= space.most; n += space.step)
      for (int64_t k = space.step; k <= space.most; k += space.step) visit(GemmDims{m, n, k});
}

TEST(ShapeSearch, ItFindsTheBestOfASweepInATenthOfItsTime) {
  ShapeSpace space;  // multiples of 1024 up to 16384
  double best = 0, sweep_s = 0;
  sweep(space, [&, device = ModelledDevice(0)](const GemmDims& s) {
    best = std::max(best, device.true_rate(s));
    sweep_s += device.cost_of(s, kSweep);
  });
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    ModelledDevice device(seed);
    BestShape found = best_shape(
        space, [&](const GemmDims& s, double seconds) { return device.timed_rate(s, seconds); }, [] { return false; });
    EXPECT_GE(device.true_rate(found.shape), 0.98 * best) << shape_text(found.shape) << ", seed " << seed;
    EXPECT_LE(device.cost_s, sweep_s / 10) << "seed " << seed;
  }
}

TEST(ShapeSearch, RidgesAndDentsDoNotStopIt) {
  ShapeSpace space;
  auto rate = [](const GemmDims& s) {
    double bump = std::sin(static_cast<double>(s.m) / 900) * std::cos(static_cast<double>(s.n) / 1300) *
                  std::sin(1 + static_cast<double>(s.k) / 2100);
    return 7e14 * (1 - 0.15 * std::abs(std::log(static_cast<double>(s.m) / 5120))) * (1 + 0.01 * bump);
  };
  double best = 0;
  sweep(space, [&](const GemmDims& s) { best = std::max(best, rate(s)); });
  BestShape found = best_shape(
      space, [&](const GemmDims& s, double) { return rate(s); }, [] { return false; });
  EXPECT_GE(rate(found.shape), 0.98 * best);
  EXPECT_DOUBLE_EQ(found.rate, rate(found.shape));
  EXPECT_LE(found.asked, space.shapes() / 12);
}

TEST(ShapeSearch, StoppedItHasTheBestSoFar) {
  int asked = 0;
  BestShape found = best_shape(
      {}, [&](const GemmDims& s, double) { return ++asked, static_cast<double>(s.k); }, [&] { return asked >= 7; });
  EXPECT_EQ(found.asked, 7);
  EXPECT_EQ(found.shape.k, 16384);
  EXPECT_EQ(best_shape(
                {}, [](const GemmDims&, double) { return 1.0; }, [] { return true; })
                .asked,
            0);
}

TEST(ShapeSearch, StoppedAmongTheLastItKeepsWhoWasSeenLongest) {
  // Whoever is glanced at looks good; seen longer, one alone is.
  GemmDims good{2048, 2048, 4096};
  int longer = 0;
  BestShape found = best_shape(
      {},
      [&](const GemmDims& s, double seconds) {
        longer += seconds > kGlanceSeconds ? 1 : 0;
        return s == good ? 10.0 : seconds > kGlanceSeconds ? 1.0 : s.k == 4096 ? 9.0 : 5.0;
      },
      [&] { return longer >= 20; });
  EXPECT_EQ(found.shape, good);
}

}  // namespace
}  // namespace sextant
