// A run that becomes slower: it is noticed, once, with its cause; a steady one is left alone. Series are made by a
// generator with the noise that real steps have: scatter, slow waves of it, and single slow steps.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "train/health/drift_watch.h"

namespace sextant {
namespace {

constexpr int kSeeds = 20;
constexpr size_t kRanks = 4;
constexpr double kOwn = 0.040, kMessages = 0.008, kInput = 0.002;

// A planted drift: it changes the times of a step from some step on.
using Planted = std::function<void(TimedStep& step, std::mt19937_64& random)>;

class NoisySteps {
 public:
  explicit NoisySteps(uint64_t seed) : random_(seed) {}

  TimedStep next(const Planted& planted = {}) {
    wave_ = 0.95 * wave_ + 0.31 * 0.03 * normal_(random_);
    TimedStep step{.step = ++step_, .own_s = {}, .message_s = {}, .input_s = {}};
    double hiccup = uniform_(random_) < 0.01 ? 1 + 3 * uniform_(random_) : 1;
    for (size_t rank = 0; rank < kRanks; ++rank) {
      step.own_s.push_back(kOwn * hiccup * std::exp(wave_ + 0.03 * normal_(random_)));
      step.input_s.push_back(kInput * std::exp(0.2 * normal_(random_)));
      step.message_s.push_back(kMessages * std::exp(0.1 * normal_(random_)));
    }
    step.processor_s = kRanks * kOwn;
    if (planted) planted(step, random_);
    // All end together: who is early waits.
    double longest = 0;
    for (size_t rank = 0; rank < kRanks; ++rank)
      longest = std::max(longest, step.own_s[rank] + step.input_s[rank] + step.message_s[rank]);
    for (size_t rank = 0; rank < kRanks; ++rank) step.message_s[rank] = longest - step.own_s[rank] - step.input_s[rank];
    step.step_s = longest;
    return step;
  }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_{0, 1};
  std::uniform_real_distribution<double> uniform_{0, 1};
  double wave_ = 0;
  int64_t step_ = 0;
};

std::vector<Drift> drifts_of(uint64_t seed, int64_t steps, int64_t from = 0, const Planted& planted = {},
                             MessagesTimed timed = MessagesTimed::yes) {
  NoisySteps series(seed);
  DriftWatch watch(timed);
  std::vector<Drift> found;
  for (int64_t step = 1; step <= steps; ++step)
    if (auto drift = watch.note(series.next(planted && step >= from ? planted : Planted()))) found.push_back(*drift);
  return found;
}

constexpr int64_t kFrom = 301;

void expect_cause(DriftCause cause, const Planted& planted, std::optional<int64_t> rank = {}) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    std::vector<Drift> found = drifts_of(seed, 600, kFrom, planted);
    ASSERT_EQ(found.size(), 1u) << "seed " << seed;
    EXPECT_EQ(name_of(found[0].cause), name_of(cause)) << "seed " << seed << ": " << found[0].text();
    EXPECT_EQ(found[0].rank, rank) << "seed " << seed;
    EXPECT_NEAR(static_cast<double>(found[0].since_step), kFrom, 30) << "seed " << seed;
    EXPECT_LE(found[0].step, kFrom + 120) << "seed " << seed;
  }
}

TEST(Drift, ASteadyRunHasNone) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed)
    for (const Drift& drift : drifts_of(seed, 10'000)) ADD_FAILURE() << "seed " << seed << ": " << drift.text();
}

TEST(Drift, OneSlowRankIsNamed) {
  expect_cause(
      DriftCause::one_rank, [](TimedStep& step, auto&) { step.own_s[2] *= 1.35; }, 2);
}

TEST(Drift, SlowInputIsNamed) {
  expect_cause(DriftCause::input, [](TimedStep& step, auto&) {
    for (double& seconds : step.input_s) seconds += 0.02;
  });
}

TEST(Drift, SlowInputOfOneRankIsNamedWithIt) {
  expect_cause(
      DriftCause::input, [](TimedStep& step, auto&) { step.input_s[1] += 0.02; }, 1);
}

TEST(Drift, SlowInputOfOneOfTwoRanksIsNamedWithIt) {
  DriftWatch watch(MessagesTimed::yes);
  std::vector<Drift> found;
  for (int64_t step = 1; step <= 400; ++step) {
    double input = step > 200 ? 0.1 : 1e-4;
    if (auto drift = watch.note({.step = step,
                                 .step_s = 0.03 + input,
                                 .processor_s = 0.06,
                                 .own_s = {0.03, 0.03},
                                 .message_s = {0, input},
                                 .input_s = {input, 1e-4}}))
      found.push_back(*drift);
  }
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].cause, DriftCause::input);
  EXPECT_EQ(found[0].rank, 0);
}

TEST(Drift, AThrottledProcessIsNamed) {
  expect_cause(DriftCause::processor_time, [](TimedStep& step, auto&) {
    for (double& seconds : step.own_s) seconds *= 1.5;
  });
}

// As measured of two ranks on a machine that others used: a process that is stopped and let go on spends the time in
// its own work and in messages alike, and more of it on one rank than on the other.
TEST(Drift, AProcessThatIsStoppedInMessagesTooIsThrottled) {
  for (double first : {100, 200}) {
    DriftWatch watch(MessagesTimed::yes);
    std::vector<Drift> found;
    for (int64_t step = 1; step <= 400; ++step) {
      bool stopped = step > 200;
      TimedStep timed{.step = step,
                      .step_s = stopped ? 1e-3 * (first + 30) : 0.035,
                      .processor_s = 0.013,
                      .crowding = 4,
                      .own_s = {stopped ? 1e-3 * first : 0.029, stopped ? 0.085 : 0.030},
                      .message_s = {stopped ? 0.030 : 0.004, stopped ? 1e-3 * (first - 55) : 0.003},
                      .input_s = {1e-4, 1e-4}};
      if (auto drift = watch.note(timed)) found.push_back(*drift);
    }
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(name_of(found[0].cause), "processor_time") << found[0].text();
  }
}

// Others that become more while a collective is delayed explain what ranks waited for cores, and no more.
TEST(Drift, ADelayedCollectiveIsNamedWhileTheMachineFills) {
  Planted planted = [](TimedStep& step, auto&) {
    for (double& seconds : step.message_s) seconds += 0.06;
    step.crowding = step.step >= kFrom ? 4 : 1;
    step.crowded_out_s = 0.004;
  };
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    std::vector<Drift> found = drifts_of(seed, 600, kFrom, planted);
    ASSERT_EQ(found.size(), 1u) << "seed " << seed;
    EXPECT_EQ(name_of(found[0].cause), "collective") << "seed " << seed << ": " << found[0].text();
  }
}

// As measured of two ranks on a machine with six threads for each core: they wait for one most of the time, and a
// little longer in messages when they wait at other moments.
TEST(Drift, MessagesThatWaitForCoresAtOtherMomentsAreNone) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed)
    for (const Drift& drift : drifts_of(seed, 600, 1, [](TimedStep&step, auto&) {
           for (double& seconds : step.message_s) seconds += step.step >= kFrom ? 0.012 : 0;
           step.crowding = 6;
           step.crowded_out_s = 0.030;
         }))
      ADD_FAILURE() << "seed " << seed << ": " << drift.text();
}

// As measured of two ranks among many other programs: medians of ten steps, of which the first five differ by more than
// the noise of a longer run would.
TEST(Drift, ADelayIsFoundBehindFewAndNoisySteps) {
  constexpr double kMedians[] = {29, 29, 29, 65, 42, 46, 144, 141, 137, 139, 136, 138};
  DriftWatch watch(MessagesTimed::yes);
  std::vector<Drift> found;
  for (int64_t step = 1; step <= 120; ++step) {
    double seconds = 1e-3 * kMedians[(step - 1) / 10], message = step > 60 ? 0.105 : 0.004;
    if (auto drift = watch.note({.step = step,
                                 .step_s = seconds,
                                 .processor_s = 0.012,
                                 .crowding = 6,
                                 .crowded_out_s = 0.02,
                                 .own_s = {seconds - message, seconds - message},
                                 .message_s = {message, message},
                                 .input_s = {1e-4, 1e-4}}))
      found.push_back(*drift);
  }
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(name_of(found[0].cause), "collective") << found[0].text();
  EXPECT_EQ(found[0].since_step, 61);
}

TEST(Drift, LowerClocksAreNamed) {
  expect_cause(DriftCause::clocks, [](TimedStep& step, auto&) {
    for (double& seconds : step.own_s) seconds *= 1.5;
    step.processor_s *= 1.5;
  });
}

TEST(Drift, ADelayedCollectiveIsNamed) {
  expect_cause(DriftCause::collective, [](TimedStep& step, auto&) {
    for (double& seconds : step.message_s) seconds += 0.02;
  });
}

// Where a device makes its own messages, its times do not tell them from its work.
TEST(Drift, OnADeviceNoMoreIsSaidThanIsKnown) {
  Planted slow_rank = [](TimedStep& step, auto&) { step.own_s[2] *= 1.5; };
  std::vector<Drift> found = drifts_of(1, 600, kFrom, slow_rank, MessagesTimed::no);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].cause, DriftCause::device);
}

// Builds and other jobs of the machine: they come and go, and take from all ranks, from some more.
class OtherPrograms {
 public:
  OtherPrograms(uint64_t seed, double least) : random_(seed), least_(least) {}
  void slow(TimedStep& step) {
    if (--left_ < 0) {
      left_ = static_cast<int64_t>(50 + 900 * uniform_(random_));
      threads_ = least_ + (uniform_(random_) < 0.5 ? 0 : 1 + 7 * uniform_(random_));
    }
    double seen = 0;
    for (double& seconds : step.own_s) {
      double factor = 1 + threads_ / static_cast<double>(kRanks) * (0.5 + 0.5 * uniform_(random_));
      seconds *= factor;
      seen += factor / kRanks;
    }
    step.processor_s *= 1 + 0.3 * (seen - 1);  // caches and cores with two threads
    step.crowding = std::round(kRanks + threads_ * (0.8 + 0.4 * uniform_(random_))) / kRanks;
  }

 private:
  std::mt19937_64 random_;
  std::uniform_real_distribution<double> uniform_{0, 1};
  double least_, threads_ = 0;
  int64_t left_ = 0;
};

TEST(Drift, OtherProgramsThatComeAndGoAreNone) {
  for (double least : {0.0, 6.0})
    for (uint64_t seed = 1; seed <= kSeeds / 4; ++seed) {
      OtherPrograms others(seed, least);
      for (const Drift& drift : drifts_of(seed, 10'000, 1, [&](TimedStep&step, auto&) { others.slow(step); }))
        ADD_FAILURE() << "seed " << seed << ", step " << drift.step << ": " << drift.text();
    }
}

// Programs that come before this one on every core: no count of threads tells how much they take.
TEST(Drift, WithoutACoreIsNone) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed)
    for (const Drift& drift : drifts_of(seed, 600, kFrom, [](TimedStep&step, auto&) {
           for (double& seconds : step.own_s) seconds += 0.2;
           step.crowded_out_s = 0.15;
         }))
      ADD_FAILURE() << "seed " << seed << ": " << drift.text();
}

TEST(Drift, OtherProgramsThatStayAreToldOnce) {
  std::vector<Drift> found = drifts_of(3, 40'000, kFrom, [](TimedStep& step, auto&) {
    for (double& seconds : step.own_s) seconds *= 1.6;
    step.crowding = 2;
  });
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(name_of(found[0].cause), "other_programs");
  EXPECT_NEAR(static_cast<double>(found[0].since_step), kFrom, 30);
  EXPECT_NEAR(static_cast<double>(found[0].step - kFrom) * found[0].now_s, DriftWatch::kLongShared, 100);
}

// Who shares memory with the run, on cores of its own, makes all its work take longer; on a machine that the run has to
// itself, lower clocks do.
TEST(Drift, MemoryThatOtherProgramsUseIsNone) {
  auto slowed = [](double others) {
    return [others](TimedStep& step, auto&) {
      for (double& seconds : step.own_s) seconds *= 1.25;
      step.processor_s *= 1.25;
      step.crowding = 1;
      step.others = others;
    };
  };
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    EXPECT_TRUE(drifts_of(seed, 600, kFrom, slowed(0.5)).empty()) << "seed " << seed;
    std::vector<Drift> alone = drifts_of(seed, 600, 1, [&](TimedStep& step, std::mt19937_64& random) {
      if (step.step >= kFrom) slowed(0)(step, random);
      step.crowding = 1;
    });
    ASSERT_EQ(alone.size(), 1u) << "seed " << seed;
    EXPECT_EQ(name_of(alone[0].cause), "clocks");
  }
}

// As measured of one rank of a thread beside builds, block by block (milliseconds of a step, of its processor time): at
// times they share memory with it, at times they take its core, and neither lasts.
TEST(Drift, OthersThatTakeCoresAndMemoryInTurnAreNone) {
  constexpr double kMeasured[][2] = {{22.0, 22.0}, {22.3, 22.3}, {24.0, 22.4}, {22.6, 22.4}, {22.5, 22.5}, {22.7, 22.7},
                                     {22.7, 22.6}, {23.1, 23.0}, {30.5, 30.5}, {30.9, 30.8}, {31.1, 31.0}, {72.3, 31.5},
                                     {63.8, 32.3}, {38.7, 25.2}, {59.9, 25.4}, {55.5, 26.3}, {27.2, 23.1}, {24.1, 24.1},
                                     {26.1, 25.8}, {24.9, 24.9}, {25.1, 25.1}, {32.2, 31.8}, {32.1, 32.1}, {32.3, 32.1},
                                     {32.2, 32.1}, {32.1, 32.0}, {32.0, 31.9}, {32.2, 32.1}};
  DriftWatch watch(MessagesTimed::yes);
  int64_t step = 0;
  for (auto [milliseconds, processor] : kMeasured)
    for (int i = 0; i < 10; ++i) {
      auto drift = watch.note({.step = ++step,
                               .step_s = 1e-3 * milliseconds,
                               .processor_s = 1e-3 * processor,
                               .crowding = milliseconds > processor + 1 ? 1.5 : 1.0,
                               .others = milliseconds > processor + 1 ? 1.0 : 0.5,
                               .crowded_out_s = 1e-3 * (milliseconds - processor),
                               .own_s = {1e-3 * milliseconds},
                               .message_s = {0},
                               .input_s = {1e-4}});
      EXPECT_FALSE(drift) << drift->text();
    }
}

// A machine that was full before hides neither a slow rank nor a slow collective, and no crowd makes steps so slow.
TEST(Drift, AmongOtherProgramsCausesAreStillNamed) {
  auto crowded = [](const Planted& planted) {
    return [planted](TimedStep& step, std::mt19937_64& random) {
      if (step.step >= kFrom) planted(step, random);
      step.crowding = 3;
    };
  };
  auto expect = [&](DriftCause cause, const Planted& planted) {
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      std::vector<Drift> found = drifts_of(seed, 600, 1, crowded(planted));
      ASSERT_EQ(found.size(), 1u) << "seed " << seed;
      EXPECT_EQ(name_of(found[0].cause), name_of(cause)) << "seed " << seed << ": " << found[0].text();
    }
  };
  expect(DriftCause::one_rank, [](TimedStep& step, auto&) { step.own_s[2] *= 1.9; });
  expect(DriftCause::collective, [](TimedStep& step, auto&) {
    for (double& seconds : step.message_s) seconds += 0.04;
  });
  expect(DriftCause::processor_time, [](TimedStep& step, auto&) {
    for (double& seconds : step.own_s) seconds *= 3;
  });
}

TEST(Drift, AfterItThePaceIsTheNewBaseline) {
  NoisySteps series(7);
  DriftWatch watch(MessagesTimed::yes);
  std::vector<int64_t> at;
  for (int64_t step = 1; step <= 1500; ++step) {
    double factor = step <= 300 ? 1 : step <= 700 ? 1.5 : step <= 1100 ? 1 : 1.5;  // slow, well again, slow again
    auto drift = watch.note(series.next([&](TimedStep& timed, auto&) {
      for (double& seconds : timed.own_s) seconds *= factor;
    }));
    if (drift) at.push_back(drift->since_step);
  }
  ASSERT_EQ(at.size(), 2u);
  EXPECT_NEAR(static_cast<double>(at[0]), 301, 30);
  EXPECT_NEAR(static_cast<double>(at[1]), 1101, 30);
}

}  // namespace
}  // namespace sextant
