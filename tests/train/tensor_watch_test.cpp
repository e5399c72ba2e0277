// Detectors over statistics of layers: each planted cause raises its event and no other, whatever the noise, and a
// quiet run raises none.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <set>

#include "train/health/tensor_watch.h"

namespace sextant {
namespace {

constexpr size_t kLayers = 6;

// Noise by a seed; what a run looks like whose numbers drift as those of training do.
class WatchedSeries {
 public:
  explicit WatchedSeries(uint64_t seed) : state_(seed * 2654435761u + 12345) {}

  double normal() { return std::sqrt(-2 * std::log(uniform() + 1e-300)) * std::cos(2 * std::numbers::pi * uniform()); }

  TensorStatistics at(int64_t step) {
    TensorStatistics s;
    double t = static_cast<double>(step);
    for (size_t layer = 0; layer < kLayers; ++layer) {
      double depth = 1 + static_cast<double>(layer);
      auto noisy = [&](double x, double spread) { return x * std::exp(spread * normal()); };
      s.activation_rms.push_back(noisy(depth * (1 + t / 5000), 0.02));
      s.activation_overflow.push_back(0);
      s.gradient_overflow.push_back(0);
      s.gradient_underflow.push_back(std::clamp(0.02 + t / 1e6 + 0.003 * normal(), 0.0, 1.0));
      // Logits grow for a while and settle, as in healthy runs.
      s.attention_logit_max.push_back(noisy(2 + 10 * (1 - std::exp(-t / 300)), 0.08));
      // Adam's updates are largest at the start.
      s.update_ratio.push_back(rate(step) * noisy(2 + 8 * std::exp(-t / 100), 0.1));
    }
    return s;
  }

  static double rate(int64_t step) { return step < 200 ? 1e-3 * static_cast<double>(step) / 200 : 1e-3; }

 private:
  double uniform() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 11) * 0x1p-53;
  }
  uint64_t state_;
};

template <class Plant>
std::multiset<EventKind> events_of(uint64_t seed, int64_t steps, const Plant& plant) {
  WatchedSeries series(seed);
  TensorWatch watch;
  std::multiset<EventKind> raised;
  for (int64_t step = 1; step <= steps; ++step) {
    TensorStatistics s = series.at(step);
    plant(step, s);
    for (const TensorAlarm& alarm : watch.note(step, WatchedSeries::rate(step), s)) raised.insert(alarm.kind);
  }
  return raised;
}

TEST(TensorWatch, AQuietRunRaisesNothing) {
  EXPECT_TRUE(events_of(1, 10'000, [](int64_t, TensorStatistics&) {}).empty());
}

// As measured in the last steps of a cosine schedule: the rate is so small that rounding leaves no update.
TEST(TensorWatch, UpdatesBelowTheLastBitOfWeightsRaiseNothing) {
  TensorWatch watch;
  for (int64_t step = 1; step <= 100; ++step) {
    TensorStatistics s;
    double rate = step <= 90 ? 1e-3 : 1e-9;
    s.update_ratio = {step <= 90 ? 5 * rate : 0};
    EXPECT_TRUE(watch.note(step, rate, s).empty()) << step;
  }
}

TEST(TensorWatch, SingleOutliersRaiseNothing) {
  EXPECT_TRUE(events_of(1, 2000, [](int64_t step, TensorStatistics& s) {
                if (step % 100 == 0)
                  s.update_ratio[2] *= 1000, s.gradient_overflow[1] = 1e-3, s.attention_logit_max[0] = 500;
              }).empty());
}

constexpr int64_t kPlanted = 250;

struct PlantedCause {
  const char* name;
  EventKind kind;
  void (*plant)(int64_t since, TensorStatistics& s);
};

class PlantedCauses : public testing::TestWithParam<PlantedCause> {};

TEST_P(PlantedCauses, RaiseTheirEventAndNoOther) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::multiset<EventKind> raised = events_of(seed, 400, [&](int64_t step, TensorStatistics& s) {
      if (step > kPlanted) GetParam().plant(step - kPlanted, s);
    });
    EXPECT_EQ(raised, std::multiset<EventKind>{GetParam().kind}) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Causes, PlantedCauses,
                         testing::Values(
                             // Gradients of layers 0 to 3 fade into zeros, and with them the updates of those layers.
                             PlantedCause{"underflow", EventKind::underflow,
                                          [](int64_t since, TensorStatistics& s) {
                                            double lost = 1 - std::exp(-static_cast<double>(since) / 50);
                                            for (size_t layer = 0; layer < 4; ++layer) {
                                              s.gradient_underflow[layer] += (1 - s.gradient_underflow[layer]) * lost;
                                              s.update_ratio[layer] *= 1.01 - lost;
                                            }
                                          }},
                             PlantedCause{"saturation", EventKind::saturation,
                                          [](int64_t, TensorStatistics& s) {
                                            s.activation_overflow[5] = 2e-5;
                                            s.update_ratio[5] *= 30;
                                          }},
                             // Slowly and fast.
                             PlantedCause{"logits_by_3_percent", EventKind::logit_growth,
                                          [](int64_t since, TensorStatistics& s) {
                                            s.attention_logit_max[3] *= std::pow(1.03, static_cast<double>(since));
                                          }},
                             PlantedCause{"logits_by_30_percent", EventKind::logit_growth,
                                          [](int64_t since, TensorStatistics& s) {
                                            s.attention_logit_max[3] *=
                                                std::pow(1.3, static_cast<double>(std::min<int64_t>(since, 60)));
                                          }},
                             PlantedCause{"dead_layer", EventKind::update_ratio,
                                          [](int64_t, TensorStatistics& s) { s.update_ratio[2] *= 0.01; }},
                             PlantedCause{"exploding_layer", EventKind::update_ratio,
                                          [](int64_t, TensorStatistics& s) { s.update_ratio[2] *= 40; }}),
                         [](const auto& info) { return info.param.name; });

// From the first step on: there is no history to compare with.
TEST(TensorWatch, GradientsThatAreMostlyZeroFromTheStartAreTold) {
  TensorWatch watch;
  std::vector<TensorAlarm> told;
  for (int64_t step = 1; step <= 5; ++step) {
    TensorStatistics s;
    s.gradient_underflow = {0.01, 0.8, 0.9};
    for (TensorAlarm& alarm : watch.note(step, 1e-3, s)) told.push_back(std::move(alarm));
  }
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].kind, EventKind::underflow);
  EXPECT_EQ(told[0].layer, 2);
  EXPECT_EQ(told[0].step, 3);
  EXPECT_EQ(told[0].text, "layer 2: 90 % of activation gradients round to zero; 2 layers in all");
}

}  // namespace
}  // namespace sextant
