// Properties of experts for any routing: every token of every slot once, none dropped, equal to a dense MLP where all
// experts are the same; and routing against rules written out plainly.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/rng.h"
#include "exec/kernel_runner.h"
#include "ops/shapes.h"

namespace sextant {
namespace {

Numbers normals(int64_t count, std::string_view name) {
  Random random(5, name);
  Numbers x(static_cast<size_t>(count));
  for (size_t i = 0; i < x.size(); ++i) x[i] = random.normal(i);
  return x;
}

// Some ways to spread slots over experts.
struct Load {
  const char* name;
  int64_t tokens, experts, top_k;
  int64_t (*expert)(int64_t slot, int64_t experts);
};
const Load kLoads[] = {
    {"in_turn", 300, 6, 2, [](int64_t slot, int64_t experts) { return slot % experts; }},
    {"all_to_one", 300, 6, 1, [](int64_t, int64_t) { return int64_t{4}; }},
    {"some_get_none", 513, 8, 3, [](int64_t slot, int64_t) { return slot % 3 * 2; }},
    {"one_token", 1, 5, 2, [](int64_t slot, int64_t) { return slot * 4; }},
    {"every_expert", 70, 4, 4, [](int64_t slot, int64_t experts) { return slot % experts; }},
};

Numbers experts_of(const Load& load) {
  Numbers experts;
  for (int64_t slot = 0; slot < load.tokens * load.top_k; ++slot)
    experts.push_back(static_cast<double>(load.expert(slot, load.experts)));
  return experts;
}

std::vector<Numbers> run(const OpDef& def, const Attrs& attrs, TensorTypes types, std::vector<Numbers> inputs) {
  return run_kernel({.def = def, .attrs = attrs, .types = std::move(types), .inputs = std::move(inputs), .threads = 2});
}

// Forced balance: experts take turns whatever the logits say; a token's weights are still its scores of them.
TEST(Experts, TakeTurnsWhereBalanceIsForced) {
  constexpr int64_t kTokens = 12, kExperts = 6, kTopK = 2;
  Numbers logits = normals(kTokens * kExperts, "logits");
  Attrs attrs{{"top_k", kTopK}, {"normalise", 1}, {"forced", 1}};
  std::vector<Numbers> routed = run(ops::route, attrs, {f64({1, kTokens, kExperts})}, {logits});
  for (int64_t slot = 0; slot < kTokens * kTopK; ++slot) {
    auto at = static_cast<size_t>(slot);
    EXPECT_EQ(routed[1][at], static_cast<double>(slot % kExperts));
    int64_t first = slot / kTopK * kTopK;
    auto score = [&](int64_t i) { return std::exp(logits[static_cast<size_t>(i / kTopK * kExperts + i % kExperts)]); };
    EXPECT_NEAR(routed[0][at], score(slot) / (score(first) + score(first + 1)), 1e-12);
  }
}

// Whole numbers through both linears: token t carries t + 1, expert e multiplies by 100·(e + 1). An exact oracle.
TEST(Experts, EverySlotIsComputedOnceByItsExpert) {
  for (const Load& load : kLoads) {
    SCOPED_TRACE(load.name);
    Numbers experts = experts_of(load), x, w;
    for (int64_t t = 0; t < load.tokens; ++t) x.push_back(static_cast<double>(t + 1));
    for (int64_t e = 0; e < load.experts; ++e) w.push_back(static_cast<double>(100 * (e + 1)));
    Attrs attrs{{"experts", load.experts}};
    TensorType chosen = i32({1, load.tokens, load.top_k}), weights = f64({load.experts, 1});
    Numbers up = run(ops::expert_up, attrs, {f64({1, load.tokens, 1}), weights, chosen}, {x, w, experts})[0];
    ASSERT_EQ(up.size(), experts.size());
    Numbers sums(static_cast<size_t>(load.tokens));
    for (size_t slot = 0; slot < up.size(); ++slot) {
      size_t token = slot / static_cast<size_t>(load.top_k);
      EXPECT_EQ(up[slot], x[token] * 100 * (experts[slot] + 1)) << "slot " << slot;
      sums[token] += up[slot] * 100 * (experts[slot] + 1);
    }
    TensorType slots = f64({1, load.tokens * load.top_k, 1});
    EXPECT_EQ(run(ops::expert_down, attrs, {slots, weights, chosen}, {up, w, experts})[0], sums);
  }
}

// The gradient of an expert without tokens is 0, and counts add up to the slots.
TEST(Experts, CountsAddUpAndUnusedExpertsHaveNoGradient) {
  for (const Load& load : kLoads) {
    SCOPED_TRACE(load.name);
    Numbers experts = experts_of(load), expected(static_cast<size_t>(load.experts));
    for (double e : experts) expected[static_cast<size_t>(e)] += 1;
    TensorType chosen = i32({1, load.tokens, load.top_k}), logits = f64({1, load.tokens, load.experts});
    Numbers drawn = normals(load.tokens * load.experts, "logits");
    std::vector<Numbers> sums = run(ops::expert_load, {}, {logits, chosen}, {drawn, experts});
    EXPECT_EQ(sums[1], expected);
    EXPECT_NEAR(std::accumulate(sums[0].begin(), sums[0].end(), 0.0), static_cast<double>(load.tokens), 1e-9);
    Numbers dw = run(ops::expert_up_weight_gradient, {{"experts", load.experts}},
                     {f64({1, load.tokens * load.top_k, 3}), f64({1, load.tokens, 4}), chosen},
                     {normals(load.tokens * load.top_k * 3, "dy"), normals(load.tokens * 4, "x"), experts})[0];
    for (size_t e = 0; e < expected.size(); ++e) {
      bool zero = std::all_of(dw.begin() + static_cast<int64_t>(e) * 12, dw.begin() + static_cast<int64_t>(e + 1) * 12,
                              [](double g) { return g == 0; });
      EXPECT_EQ(zero, expected[e] == 0) << "expert " << e;
    }
  }
}

// All experts equal, and weights that sum to 1: one MLP.
TEST(Experts, EqualExpertsAreOneMlp) {
  constexpr int64_t kTokens = 130, kExperts = 4, kTopK = 2, kHidden = 12, kInner = 20;
  Numbers x = normals(kTokens * kHidden, "x"), gate_up = normals(2 * kInner * kHidden, "gate_up");
  Numbers down = normals(kHidden * kInner, "down"), all_gate_up, all_down;
  for (int64_t e = 0; e < kExperts; ++e) {
    all_gate_up.insert(all_gate_up.end(), gate_up.begin(), gate_up.end());
    all_down.insert(all_down.end(), down.begin(), down.end());
  }
  TensorType tokens = f64({1, kTokens, kHidden}), chosen = i32({1, kTokens, kTopK});
  std::vector<Numbers> routed = run(ops::route, {{"top_k", kTopK}, {"normalise", 1}}, {f64({1, kTokens, kExperts})},
                                    {normals(kTokens * kExperts, "logits")});
  Attrs attrs{{"experts", kExperts}};
  Numbers up = run(ops::expert_up, attrs, {tokens, f64({kExperts * 2 * kInner, kHidden}), chosen},
                   {x, all_gate_up, routed[1]})[0];
  Numbers inner = run(ops::weighted_swiglu, {}, {f64({1, kTokens * kTopK, 2 * kInner}), f64({1, kTokens, kTopK})},
                      {up, routed[0]})[0];
  Numbers y =
      run(ops::expert_down, attrs, {f64({1, kTokens * kTopK, kInner}), f64({kExperts * kHidden, kInner}), chosen},
          {inner, all_down, routed[1]})[0];
  Numbers dense_up = run(ops::linear, {}, {tokens, f64({2 * kInner, kHidden})}, {x, gate_up})[0];
  Numbers dense_inner = run(ops::swiglu, {}, {f64({1, kTokens, 2 * kInner})}, {dense_up})[0];
  Numbers dense = run(ops::linear, {}, {f64({1, kTokens, kInner}), f64({kHidden, kInner})}, {dense_inner, down})[0];
  EXPECT_LT(relative_error(y, dense), 1e-12);
}

TEST(Route, LowestExpertWinsAmongEquals) {
  std::vector<Numbers> routed = run(ops::route, {{"top_k", 2}}, {f64({1, 2, 4})}, {{1, 1, 1, 1, 0, 2, 0, 2}});
  EXPECT_EQ(routed[1], (Numbers{0, 1, 1, 3}));
  EXPECT_DOUBLE_EQ(routed[0][0], 0.25);
  // All four sigmoids are 1 by rounding.
  routed = run(ops::route, {{"top_k", 2}, {"sigmoid", 1}}, {f64({1, 1, 4})}, {{40, 43, 41, 42}});
  EXPECT_EQ(routed[1], (Numbers{1, 3}));
  EXPECT_EQ(routed[0], (Numbers{1, 1}));
}

TEST(Route, NotANumberStillNamesExperts) {
  const double nan = std::nan("");
  Numbers experts = run(ops::route, {{"top_k", 2}}, {f64({1, 1, 3})}, {{nan, nan, nan}})[1];
  for (double e : experts) {
    EXPECT_GE(e, 0);
    EXPECT_LT(e, 3);
  }
}

// Softmax before the choice reaches the logits of all experts; after it, and by sigmoids, those of the chosen alone.
TEST(Route, GradientsReachTheLogitsThatTookPart) {
  struct Case {
    const char* name;
    Attrs attrs;
    bool reaches_all;
  };
  for (const Case& c :
       {Case{"softmax", {{"top_k", 2}}, true}, Case{"chosen", {{"top_k", 2}, {"chosen_only", 1}}, false},
        Case{"sigmoid", {{"top_k", 2}, {"sigmoid", 1}, {"normalise", 1}}, false}}) {
    Numbers dlogits = run(ops::route_backward, c.attrs, {f64({1, 1, 2}), f64({1, 1, 4}), i32({1, 1, 2})},
                          {{1, -2}, {0.5, -0.3, 0.1, 0.2}, {0, 3}})[0];
    for (size_t e : {0U, 3U}) EXPECT_NE(dlogits[e], 0) << c.name;
    for (size_t e : {1U, 2U}) EXPECT_EQ(dlogits[e] != 0, c.reaches_all) << c.name;
  }
}

// DeepSeek-V3's: sigmoid scores, chosen by score + correction among the groups whose two best are the best in sum;
// weights are scores without the correction, divided by their sum and scaled.
TEST(Route, GroupsAndCorrectionAsWrittenOut) {
  constexpr size_t kTokens = 50, kExperts = 12, kGroups = 4, kKept = 2, kTopK = 3, kSize = kExperts / kGroups;
  constexpr double kScale = 2.5;
  Numbers logits = normals(kTokens * kExperts, "logits"), correction = normals(kExperts, "correction");
  std::vector<Numbers> routed = run(ops::route,
                                    {{"top_k", int64_t{kTopK}},
                                     {"sigmoid", 1},
                                     {"normalise", 1},
                                     {"scale", kScale},
                                     {"groups", int64_t{kGroups}},
                                     {"keep_groups", int64_t{kKept}},
                                     {"group_top", 2}},
                                    {f64({1, kTokens, kExperts}), f64({kExperts})}, {logits, correction});
  for (size_t t = 0; t < kTokens; ++t) {
    Numbers scores(kExperts), by(kExperts);
    for (size_t e = 0; e < kExperts; ++e) {
      scores[e] = 1 / (1 + std::exp(-logits[t * kExperts + e]));
      by[e] = scores[e] + correction[e];
    }
    std::vector<std::pair<double, size_t>> groups;
    for (size_t g = 0; g < kGroups; ++g) {
      Numbers of(by.begin() + static_cast<int64_t>(g * kSize), by.begin() + static_cast<int64_t>((g + 1) * kSize));
      std::sort(of.rbegin(), of.rend());
      groups.emplace_back(-(of[0] + of[1]), g);
    }
    std::sort(groups.begin(), groups.end());
    std::vector<std::pair<double, size_t>> left;
    for (size_t kept = 0; kept < kKept; ++kept)
      for (size_t i = 0; i < kSize; ++i)
        left.emplace_back(-by[groups[kept].second * kSize + i], groups[kept].second * kSize + i);
    std::sort(left.begin(), left.end());
    double sum = 1e-20;
    for (size_t j = 0; j < kTopK; ++j) sum += scores[left[j].second];
    for (size_t j = 0; j < kTopK; ++j) {
      EXPECT_EQ(routed[1][t * kTopK + j], static_cast<double>(left[j].second)) << "token " << t;
      EXPECT_NEAR(routed[0][t * kTopK + j], kScale * scores[left[j].second] / sum, 1e-12);
    }
  }
}

// Scores of few values, so that experts of a group tie, and groups do: the group's score is the sum of its best,
// whichever of equals are taken, and the first of equal groups is kept.
TEST(Route, GroupsWithEqualScores) {
  constexpr int64_t kTokens = 60, kExperts = 12;
  for (int64_t groups : {2, 3, 4})
    for (int64_t top : {int64_t{1}, int64_t{2}, kExperts / groups}) {
      int64_t size = kExperts / groups, kept = groups - 1, top_k = 2;
      Random random(9, "ties", static_cast<uint64_t>(groups * 100 + top));
      Numbers logits(static_cast<size_t>(kTokens * kExperts));
      for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<double>(random.below(i, 3)) - 1;
      Numbers found = run(
          ops::route, {{"top_k", top_k}, {"sigmoid", 1}, {"groups", groups}, {"keep_groups", kept}, {"group_top", top}},
          {f64({1, kTokens, kExperts})}, {logits})[1];
      for (int64_t t = 0; t < kTokens; ++t) {
        auto score = [&](int64_t expert) {
          return 1 / (1 + std::exp(-logits[static_cast<size_t>(t * kExperts + expert)]));
        };
        std::vector<std::pair<double, int64_t>> of_groups;  // the best first, the first of equals before
        for (int64_t g = 0; g < groups; ++g) {
          Numbers scores;
          for (int64_t i = 0; i < size; ++i) scores.push_back(score(g * size + i));
          std::sort(scores.rbegin(), scores.rend());
          double sum = 0;
          for (int64_t i = 0; i < top; ++i) sum += scores[static_cast<size_t>(i)];
          of_groups.emplace_back(-sum, g);
        }
        std::sort(of_groups.begin(), of_groups.end());
        std::vector<std::pair<double, int64_t>> experts;
        for (int64_t k = 0; k < kept; ++k)
          for (int64_t i = 0; i < size; ++i) {
            int64_t expert = of_groups[static_cast<size_t>(k)].second * size + i;
            experts.emplace_back(-score(expert), expert);
          }
        std::sort(experts.begin(), experts.end());
        for (int64_t k = 0; k < top_k; ++k)
          EXPECT_EQ(found[static_cast<size_t>(t * top_k + k)],
                    static_cast<double>(experts[static_cast<size_t>(k)].second))
              << groups << " groups, by their " << top << " best, token " << t;
      }
    }
}

// Perfectly balanced experts give top_k times the coefficient, as in transformers.
TEST(BalanceLoss, OfEqualLoadIsTopK) {
  constexpr double kTokens = 40, kExperts = 8, kTopK = 2;
  Numbers scores(8, kTokens / kExperts), counts(8, kTokens * kTopK / kExperts);
  Attrs attrs{{"experts", 8}, {"tokens", 40}, {"coefficient", 0.01}};
  EXPECT_DOUBLE_EQ(run(ops::balance_loss, attrs, {f64({8}), f64({8})}, {scores, counts})[0][0], 0.01 * kTopK);
}

// Of each layer and of each sequence, divided by top_k: the coefficient.
TEST(BalanceLoss, OfEqualLoadInSequencesIsTheCoefficient) {
  constexpr double kSeq = 20, kExperts = 8, kTopK = 2;
  Numbers scores(16, kSeq / kExperts), counts(16, kSeq * kTopK / kExperts);
  Attrs attrs{{"experts", 8}, {"tokens", 20}, {"sequences", 2}, {"coefficient", 0.01 / kTopK}};
  EXPECT_DOUBLE_EQ(run(ops::balance_loss, attrs, {f64({2, 8}), f64({2, 8})}, {scores, counts})[0][0], 0.01);
}

TEST(RouterZLoss, IsTheMeanSquareOfLogSumExp) {
  Numbers logits{0, 0, std::log(3.0), std::log(5.0)};  // log-sum-exps of log 2 and log 8
  Attrs attrs{{"tokens", 2}, {"coefficient", 0.1}};
  double expected = 0.1 * (std::pow(std::log(2.0), 2) + std::pow(std::log(8.0), 2)) / 2;
  EXPECT_NEAR(run(ops::router_z_loss, attrs, {f64({1, 2, 2})}, {logits})[0][0], expected, 1e-12);
}

TEST(LoadStatistics, OfKnownLoads) {
  std::vector<Numbers> even = run(ops::load_statistics, {}, {f64({4})}, {{3, 3, 3, 3}});
  EXPECT_EQ(even[0][0], 1);
  EXPECT_NEAR(even[1][0], 1, 1e-12);
  EXPECT_EQ(even[2][0], 0);
  std::vector<Numbers> two = run(ops::load_statistics, {}, {f64({4})}, {{6, 0, 6, 0}});
  EXPECT_EQ(two[0][0], 2);
  EXPECT_NEAR(two[1][0], 0.5, 1e-12);
  EXPECT_EQ(two[2][0], 2);
}

// Known loads: exactly one step up below the mean, one down above it, none at it, and none at all where the step is
// skipped.
TEST(BalanceBias, StepsTowardsTheMean) {
  Attrs attrs{{"speed", 0.25}};
  TensorTypes types{f64({4}), f64({4}), f64({})};
  Numbers bias{1, -2, 0, 0.5}, counts{3, 5, 4, 4};
  std::vector<Numbers> stepped = run(ops::balance_bias, attrs, types, {bias, counts, {1}});
  EXPECT_EQ(stepped[0], (Numbers{1.25, -2.25, 0, 0.5}));
  EXPECT_EQ(stepped[1], (Numbers{-2.25})) << "the least";
  EXPECT_EQ(stepped[2], (Numbers{1.25})) << "the most";
  std::vector<Numbers> skipped = run(ops::balance_bias, attrs, types, {bias, counts, {0}});
  EXPECT_EQ(skipped, (std::vector<Numbers>{bias, {-2}, {1}}));
  // A mean that is no whole number, and whose division would round.
  EXPECT_EQ(run(ops::balance_bias, attrs, {f64({3}), f64({3}), f64({})}, {{0, 0, 0}, {1, 1, 2}, {0.5}})[0],
            (Numbers{0.25, 0.25, -0.25}));
}

}  // namespace
}  // namespace sextant
