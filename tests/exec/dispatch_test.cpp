// Tokens to experts and back, whatever the routing is: every slot once, in its block's rows; what does not fit is
// counted. Whole numbers travel, so that there is nothing to tolerate.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "exec/kernel_runner.h"
#include "ops/shapes.h"

namespace sextant {
namespace {

// Ways to spread the slots of tokens over experts, of which `blocks` ranks hold a share each.
struct Spread {
  const char* name;
  int64_t sequences, positions, top_k, experts, blocks;
  int64_t (*expert)(int64_t token, int64_t slot, int64_t experts);
};
const Spread kSpreads[] = {
    {"in_turn", 4, 6, 2, 8, 4, [](int64_t token, int64_t slot, int64_t n) { return (token + slot) % n; }},
    {"all_to_one_block", 4, 6, 2, 8, 4, [](int64_t, int64_t slot, int64_t) { return 6 + slot; }},
    {"a_block_gets_none", 2, 10, 3, 6, 3, [](int64_t token, int64_t slot, int64_t) { return (token + slot) % 4; }},
    {"every_expert", 2, 4, 4, 4, 2, [](int64_t, int64_t slot, int64_t) { return slot; }},
    {"one_expert_each", 2, 8, 1, 4, 4, [](int64_t token, int64_t, int64_t n) { return token * 3 % n; }},
    {"one_token", 2, 2, 2, 6, 2, [](int64_t token, int64_t slot, int64_t) { return token + 2 * slot; }},
};

constexpr int64_t kGroupSequences = 1;  // sequences in a group; two groups along a sequence

struct DispatchCase {
  const Spread& spread;
  int64_t capacity;

  int64_t positions() const { return spread.positions / 2; }  // in a group
  int64_t rows() const { return spread.blocks * capacity; }
  int64_t tokens() const { return spread.sequences * spread.positions; }
  TensorType map_type() const { return i32({spread.sequences, 2, rows()}); }
  Attrs moves() const { return {{"batch", kGroupSequences}, {"positions", positions()}, {"top_k", spread.top_k}}; }
  Attrs row_moves() const {
    Attrs attrs = moves();
    attrs.set("capacity", capacity);
    return attrs;
  }
  Numbers experts() const {
    Numbers chosen;
    for (int64_t token = 0; token < tokens(); ++token)
      for (int64_t slot = 0; slot < spread.top_k; ++slot)
        chosen.push_back(static_cast<double>(spread.expert(token, slot, spread.experts)));
    return chosen;
  }
};

std::vector<Numbers> run_op(const OpDef& def, const Attrs& attrs, TensorTypes types, std::vector<Numbers> inputs) {
  return run_kernel({.def = def, .attrs = attrs, .types = std::move(types), .inputs = std::move(inputs), .threads = 2});
}

// No routing needs more: a token has each of its experts once.
int64_t enough(const Spread& spread) {
  return kGroupSequences * spread.positions / 2 * std::min(spread.top_k, spread.experts / spread.blocks);
}

std::vector<Numbers> map_of(const DispatchCase& c, int64_t round = 0) {
  Attrs attrs{{"batch", kGroupSequences},
              {"positions", c.positions()},
              {"blocks", c.spread.blocks},
              {"capacity", c.capacity},
              {"most", enough(c.spread)},
              {"round", round},
              {"experts_per_block", c.spread.experts / c.spread.blocks}};
  return run_op(ops::dispatch_map, attrs, {i32({c.spread.sequences, c.spread.positions, c.spread.top_k})},
                {c.experts()});
}

// Every token carries a number of its own, scaled by its row.
KernelRun rows_back(const DispatchCase& c, const Numbers& x, const Numbers& sources) {
  Numbers rows;
  int64_t in_group = c.positions() * kGroupSequences;
  for (size_t i = 0; i < sources.size(); ++i) {
    int64_t group = static_cast<int64_t>(i) / c.rows();
    auto token = static_cast<int64_t>(sources[i]) / c.spread.top_k;
    rows.push_back(sources[i] < 0 ? 0 : x[static_cast<size_t>(group * in_group + token)] * (sources[i] + 1));
  }
  Attrs attrs = c.row_moves();
  attrs.set("last_first", int64_t{1});
  return {.def = ops::combine,
          .attrs = attrs,
          .types = {f64({c.spread.sequences, 2, c.rows(), 1}), c.map_type()},
          .inputs = {rows, sources},
          .real = DType::f32,
          .threads = 2};
}

TEST(Dispatch, EverySlotHasOneRowInTheBlockOfItsExpert) {
  for (const Spread& spread : kSpreads) {
    SCOPED_TRACE(spread.name);
    DispatchCase c{spread, enough(spread)};
    std::vector<Numbers> map = map_of(c);
    for (double lost : map[2]) EXPECT_EQ(lost, 0);
    std::map<std::pair<int64_t, double>, int> seen;  // group and source
    for (int64_t i = 0; i < static_cast<int64_t>(map[0].size()); ++i) {
      auto at = static_cast<size_t>(i);
      EXPECT_EQ(map[0][at] < 0, map[1][at] < 0);
      if (map[0][at] < 0) continue;
      ++seen[{i / c.rows(), map[0][at]}];
      int64_t block = i % c.rows() / c.capacity;
      EXPECT_EQ(static_cast<int64_t>(map[1][at]) / (spread.experts / spread.blocks), block);
    }
    EXPECT_EQ(seen.size(), static_cast<size_t>(c.tokens() * spread.top_k));
    for (const auto& [slot, count] : seen) EXPECT_EQ(count, 1);
  }
}

// Token t carries t + 1; there and back it is multiplied by the number of its slots.
TEST(Dispatch, WhatIsCombinedIsWhatWasDispatched) {
  for (const Spread& spread : kSpreads) {
    SCOPED_TRACE(spread.name);
    DispatchCase c{spread, enough(spread)};
    std::vector<Numbers> map = map_of(c);
    Numbers x, weights;
    for (int64_t t = 0; t < c.tokens(); ++t) x.push_back(static_cast<double>(t + 1));
    for (int64_t i = 0; i < c.tokens() * spread.top_k; ++i) weights.push_back(static_cast<double>(i + 1));
    TensorType tokens = f64({spread.sequences, spread.positions, 1});
    Numbers rows = run_op(ops::dispatch, c.row_moves(), {tokens, c.map_type()}, {x, map[0]})[0];
    TensorType row_type = f64({spread.sequences, 2, c.rows(), 1});
    Numbers back = run_op(ops::combine, c.row_moves(), {row_type, c.map_type()}, {rows, map[0]})[0];
    for (size_t t = 0; t < x.size(); ++t) EXPECT_EQ(back[t], static_cast<double>(spread.top_k) * x[t]) << t;
    TensorType weight_type = f64({spread.sequences, spread.positions, spread.top_k});
    Numbers row_weights = run_op(ops::dispatch_weights, c.moves(), {weight_type, c.map_type()}, {weights, map[0]})[0];
    TensorType row_weight_type = f64({spread.sequences, 2, c.rows()});
    EXPECT_EQ(
        run_op(ops::dispatch_weights_backward, c.moves(), {row_weight_type, c.map_type()}, {row_weights, map[0]})[0],
        weights);
  }
}

// Slots that remain in the queues after so many rounds, counted here by hand.
TEST(Dispatch, SlotsWithoutARowAreCounted) {
  for (const Spread& spread : kSpreads) {
    SCOPED_TRACE(spread.name);
    for (int64_t capacity = 1; capacity <= enough(spread); ++capacity) {
      DispatchCase c{spread, capacity};
      Numbers experts = c.experts(), lost = map_of(c)[2];
      std::map<std::pair<size_t, int64_t>, int64_t> wanted;  // group and block
      for (int64_t slot = 0; slot < static_cast<int64_t>(experts.size()); ++slot) {
        int64_t token = slot / spread.top_k, sequence = token / spread.positions;
        auto group = static_cast<size_t>(sequence * 2 + token % spread.positions / c.positions());
        ++wanted[{group, static_cast<int64_t>(experts[static_cast<size_t>(slot)]) / (spread.experts / spread.blocks)}];
      }
      int64_t rounds = (enough(spread) + capacity - 1) / capacity;
      ASSERT_EQ(lost.size(), static_cast<size_t>(std::max<int64_t>(1, rounds - 1)));
      for (size_t i = 0; i < lost.size(); ++i) {
        int64_t excess = 0;
        for (const auto& [place, count] : wanted)
          excess += std::max<int64_t>(0, count - static_cast<int64_t>(i + 1) * capacity);
        EXPECT_EQ(lost[i], static_cast<double>(excess)) << "capacity " << capacity << ", " << i + 1 << " rounds";
      }
    }
  }
}

// The rows of all rounds are those of one with room for all, and sums that go on from round to round have its bits.
TEST(Dispatch, RoundsTakeEverySlotOnce) {
  for (const Spread& spread : kSpreads) {
    SCOPED_TRACE(spread.name);
    DispatchCase whole{spread, enough(spread)};
    Numbers all = map_of(whole)[0], x;
    for (int64_t i = 0; i < whole.tokens(); ++i) x.push_back(1.0 / static_cast<double>(i + 3));
    for (int64_t capacity = 1; capacity < enough(spread); ++capacity) {
      DispatchCase c{spread, capacity};
      int64_t rounds = (enough(spread) + capacity - 1) / capacity;
      Numbers sum;
      for (int64_t round = rounds; round-- > 0;) {
        Numbers sources = map_of(c, round)[0];
        for (size_t i = 0; i < sources.size(); ++i) {
          auto at = static_cast<int64_t>(i);
          int64_t group = at / c.rows(), block = at % c.rows() / capacity, place = round * capacity + at % capacity;
          bool beyond = place >= whole.capacity;
          double expected =
              beyond ? -1 : all[static_cast<size_t>(group * whole.rows() + block * whole.capacity + place)];
          EXPECT_EQ(sources[i], expected) << "round " << round << ", row " << i;
        }
        KernelRun combine = rows_back(c, x, sources);
        if (!sum.empty()) combine.attrs.set("accumulate", int64_t{1}), combine.first_output = sum;
        sum = run_kernel(combine)[0];
      }
      EXPECT_EQ(sum, run_kernel(rows_back(whole, x, all))[0]) << capacity;
    }
  }
}

// Copies of tokens, one for each block that has some of a token's experts.
struct CopyCase {
  DispatchCase rows;
  int64_t copies;
  int64_t tokens, round, rounds;

  const Spread& spread() const { return rows.spread; }
  int64_t all_copies() const { return spread().blocks * copies; }
  int64_t in_group() const { return kGroupSequences * rows.positions(); }
  TensorType copy_type() const { return i32({spread().sequences, 2, all_copies()}); }
  Attrs moves() const {
    Attrs attrs = rows.moves();
    attrs.set("capacity", all_copies());
    return attrs;
  }
  Attrs of_copies() const { return {{"capacity", rows.capacity}, {"copies", copies}, {"experts", spread().experts}}; }
};

CopyCase all_in_one_round(const Spread& spread) {
  DispatchCase rows{spread, enough(spread)};
  return {rows, kGroupSequences * rows.positions(), kGroupSequences * rows.positions(), 0, 1};
}

// copies, sources, row_experts, lost.
std::vector<Numbers> copies_of(const CopyCase& c) {
  Attrs attrs{{"batch", kGroupSequences},    {"positions", c.rows.positions()},
              {"blocks", c.spread().blocks}, {"capacity", c.rows.capacity},
              {"copies", c.copies},          {"most", enough(c.spread())},
              {"tokens", c.tokens},          {"round", c.round},
              {"rounds", c.rounds},          {"experts_per_block", c.spread().experts / c.spread().blocks}};
  return run_op(ops::copies_map, attrs, {i32({c.spread().sequences, c.spread().positions, c.spread().top_k})},
                {c.rows.experts()});
}

// Group and token of a slot of the whole batch.
std::pair<int64_t, int64_t> place_of_token(const CopyCase& c, int64_t token) {
  int64_t sequence = token / c.spread().positions, position = token % c.spread().positions;
  return {sequence * 2 + position / c.rows.positions(), position % c.rows.positions()};
}

// Whole numbers that travel to rows and back through copies: every token once for each block it has experts in, every
// slot once, and back with as many times its number as it has slots.
TEST(TokenCopies, BringEveryTokenOncePerBlockAndBackOncePerSlot) {
  for (const Spread& spread : kSpreads) {
    SCOPED_TRACE(spread.name);
    CopyCase c = all_in_one_round(spread);
    std::vector<Numbers> map = copies_of(c);
    EXPECT_EQ(map[3], Numbers{0});
    Numbers experts = c.rows.experts(), x;
    std::map<std::tuple<int64_t, int64_t, int64_t>, int64_t> slots;  // by group, token and block
    for (int64_t i = 0; i < static_cast<int64_t>(experts.size()); ++i) {
      auto [group, token] = place_of_token(c, i / spread.top_k);
      int64_t block = static_cast<int64_t>(experts[static_cast<size_t>(i)]) / (spread.experts / spread.blocks);
      ++slots[{group, token, block}];
    }
    int64_t sent = 0;
    for (int64_t i = 0; i < static_cast<int64_t>(map[0].size()); ++i) {
      double source = map[0][static_cast<size_t>(i)];
      if (source < 0) continue;
      ++sent;
      int64_t group = i / c.all_copies(), block = i % c.all_copies() / c.copies;
      EXPECT_TRUE(slots.contains({group, static_cast<int64_t>(source) / spread.top_k, block}));
    }
    EXPECT_EQ(sent, static_cast<int64_t>(slots.size()));
    for (int64_t t = 0; t < c.rows.tokens(); ++t) x.push_back(static_cast<double>(t + 1));
    Numbers copies =
        run_op(ops::dispatch, c.moves(), {f64({spread.sequences, spread.positions, 1}), c.copy_type()}, {x, map[0]})[0];
    TensorType copy_rows = f64({spread.sequences, 2, c.all_copies(), 1});
    TensorType rows_type = f64({spread.sequences, 2, c.rows.rows(), 1});
    Numbers rows = run_op(ops::copies_to_rows, c.of_copies(), {copy_rows, c.rows.map_type()}, {copies, map[2]})[0];
    EXPECT_EQ(rows, run_op(ops::dispatch, c.rows.row_moves(),
                           {f64({spread.sequences, spread.positions, 1}), c.rows.map_type()}, {x, map[1]})[0]);
    Numbers sums = run_op(ops::rows_to_copies, c.of_copies(), {rows_type, c.rows.map_type()}, {rows, map[2]})[0];
    Numbers back = run_op(ops::combine, c.moves(), {copy_rows, c.copy_type()}, {sums, map[0]})[0];
    for (size_t t = 0; t < x.size(); ++t) EXPECT_EQ(back[t], static_cast<double>(spread.top_k) * x[t]) << t;
  }
}

// With fewer rows or copies, a token that finds no place for all of its rows has none, nor has one of its round behind
// it.
TEST(TokenCopies, CountTheSlotsThatRoundsLeave) {
  for (const Spread& spread : kSpreads) {
    SCOPED_TRACE(spread.name);
    int64_t most = std::min(spread.top_k, spread.experts / spread.blocks);
    CopyCase whole = all_in_one_round(spread);
    for (int64_t capacity = most; capacity <= enough(spread); ++capacity)
      for (int64_t copies = 1; copies <= whole.copies; ++copies)
        for (int64_t rounds : {1, 2}) {
          int64_t tokens = (whole.tokens + rounds - 1) / rounds;
          if ((whole.tokens + tokens - 1) / tokens != rounds) continue;
          int64_t rows = 0;
          std::vector<Numbers> map;
          CopyCase c{{spread, capacity}, copies, tokens, 0, 4};
          for (; c.round < rounds; ++c.round) {
            map = copies_of(c);
            for (double source : map[1]) rows += source >= 0 ? 1 : 0;
          }
          Numbers experts = c.rows.experts();
          struct Queue {
            int64_t slots = 0, tokens = 0;             // of all
            int64_t slots_of_round = 0, of_round = 0;  // of the round so far
            int64_t round = 0, served = 0;
          };
          std::map<std::pair<int64_t, int64_t>, Queue> queues;  // by group and block
          for (int64_t token = 0; token < c.rows.tokens(); ++token) {
            std::map<int64_t, int64_t> here;
            for (int64_t j = 0; j < spread.top_k; ++j)
              ++here[static_cast<int64_t>(experts[static_cast<size_t>(token * spread.top_k + j)]) /
                     (spread.experts / spread.blocks)];
            auto [group, place] = place_of_token(c, token);
            for (const auto& [block, slots] : here) {
              Queue& queue = queues[{group, block}];
              if (queue.round != place / tokens) queue.slots_of_round = queue.of_round = 0;
              queue.round = place / tokens;
              queue.slots += slots, ++queue.tokens;
              queue.slots_of_round += slots, ++queue.of_round;
              if (queue.slots_of_round <= capacity && queue.of_round <= copies) queue.served += slots;
            }
          }
          Numbers lost(3, 0.0);
          for (const auto& [place, queue] : queues)
            for (int64_t times = 1; times <= 3; ++times) {
              int64_t beyond = std::max({int64_t{0}, queue.slots - times * capacity, queue.tokens - times * copies});
              lost[static_cast<size_t>(times - 1)] +=
                  static_cast<double>(times == rounds ? queue.slots - queue.served : beyond);
            }
          EXPECT_EQ(map[3], lost) << capacity << " rows, " << copies << " copies, " << rounds << " rounds";
          EXPECT_EQ(rows + static_cast<int64_t>(lost[static_cast<size_t>(rounds - 1)]),
                    static_cast<int64_t>(experts.size()));
        }
  }
}

// Rounds of some tokens each take every slot once, and have room for any routing of them.
TEST(TokenCopies, RoundsTakeEverySlotOnce) {
  for (const Spread& spread : kSpreads) {
    SCOPED_TRACE(spread.name);
    int64_t most = std::min(spread.top_k, spread.experts / spread.blocks);
    CopyCase whole = all_in_one_round(spread);
    for (int64_t tokens = 1; tokens <= whole.tokens; ++tokens) {
      int64_t rounds = (whole.tokens + tokens - 1) / tokens;
      std::map<std::pair<int64_t, double>, int64_t> seen;  // group and source
      for (int64_t round = 0; round < rounds; ++round) {
        CopyCase c{{spread, tokens * most}, tokens, tokens, round, rounds};
        Numbers sources = copies_of(c)[1];
        for (size_t i = 0; i < sources.size(); ++i)
          if (sources[i] >= 0) {
            ++seen[{static_cast<int64_t>(i) / c.rows.rows(), sources[i]}];
            EXPECT_EQ(static_cast<int64_t>(sources[i]) / spread.top_k / tokens, round);
          }
      }
      EXPECT_EQ(seen.size(), static_cast<size_t>(whole.rows.tokens() * spread.top_k));
      for (const auto& [slot, count] : seen) EXPECT_EQ(count, 1);
    }
  }
}

// By token, the rows of an expert are added in one order however they are placed.
TEST(TokenCopies, WeightGradientsDoNotDependOnPlaces) {
  constexpr int64_t kGroups = 3, kRows = 24, kWidth = 9, kExperts = 2;
  Attrs attrs{{"experts", kExperts}, {"blocks", 1}, {"filled", 1.0}, {"by_token", 1}};
  auto value = [](int64_t group, int64_t token, int64_t i) {
    return std::sin(static_cast<double>(group * 7919 + token * 104729 + i * 31));
  };
  // Groups leave out some tokens each, and have more or fewer empty rows at the end.
  auto gradient = [&](int64_t first, int64_t tokens, int64_t rows, const Numbers& sum) {
    Numbers dy, x, experts;
    for (int64_t group = 0; group < kGroups; ++group) {
      int64_t placed = 0;
      for (int64_t token = first; token < first + tokens; ++token) {
        if ((token + group) % (group + 2) == 0) continue;
        for (int64_t i = 0; i < kWidth; ++i)
          dy.push_back(value(group, token, i)), x.push_back(value(group, token, 1000 + i));
        experts.push_back(static_cast<double>(token * kExperts + (token * 3 + group) % 5 % kExperts));
        ++placed;
      }
      for (; placed < rows; ++placed) {
        for (int64_t i = 0; i < kWidth; ++i) dy.push_back(0), x.push_back(0);
        experts.push_back(-1);
      }
    }
    KernelRun run{.def = ops::expert_rows_weight_gradient,
                  .attrs = attrs,
                  .types = {f64({1, kGroups, rows, kWidth}), f64({1, kGroups, rows, kWidth}), i32({1, kGroups, rows})},
                  .inputs = {dy, x, experts},
                  .real = DType::f32,
                  .threads = 2};
    if (!sum.empty()) run.attrs.set("accumulate", int64_t{1}), run.first_output = sum;
    return run_kernel(run)[0];
  };
  Numbers whole = gradient(0, kRows, kRows, {});
  for (int64_t tokens : {1, 5, 12}) {
    Numbers sum;
    for (int64_t first = 0; first < kRows; first += tokens)
      sum = gradient(first, std::min(tokens, kRows - first), tokens, sum);
    EXPECT_EQ(sum, whole) << tokens;
  }
}

// The same of experts' biases, whose rows are added in that order too.
TEST(Dispatch, BiasGradientsGoOnFromRoundToRound) {
  constexpr int64_t kGroups = 3, kRows = 24, kWidth = 70, kExperts = 2;
  auto value = [](int64_t group, int64_t row, int64_t i) {
    return std::sin(static_cast<double>(group * 7919 + row * 104729 + i * 31));
  };
  for (bool by_token : {false, true}) {
    Attrs attrs{{"experts", kExperts}, {"blocks", 1}};
    if (by_token) attrs.set("by_token", int64_t{1});
    auto part = [&](int64_t first, int64_t rows, const Numbers& sum) {
      Numbers dy, weights, experts, bias;
      for (int64_t group = 0; group < kGroups; ++group)
        for (int64_t row = first; row < first + rows; ++row) {
          for (int64_t i = 0; i < kWidth; ++i) dy.push_back(value(group, row, i));
          weights.push_back(value(group, row, 1000));
          experts.push_back(static_cast<double>(row * kExperts + (group + row * 3) % 5 % kExperts));
        }
      for (int64_t i = 0; i < kExperts * kWidth; ++i) bias.push_back(value(0, 0, i));
      TensorType of_rows = f64({1, kGroups, rows});
      KernelRun run{
          .def = ops::expert_rows_weighted_bias_gradient,
          .attrs = attrs,
          .types = {f64({1, kGroups, rows, kWidth}), f64({kExperts * kWidth}), of_rows, i32({1, kGroups, rows})},
          .inputs = {dy, bias, weights, experts},
          .real = DType::f32,
          .threads = 2};
      if (!sum.empty()) run.attrs.set("accumulate", int64_t{1}), run.first_output = sum;
      return run_kernel(run)[0];
    };
    Numbers whole = part(0, kRows, {});
    for (int64_t rows : {1, 8, 13}) {
      Numbers sum;
      for (int64_t first = 0; first < kRows; first += rows) sum = part(first, std::min(rows, kRows - first), sum);
      EXPECT_EQ(sum, whole) << rows << (by_token ? " by token" : " by place");
    }
  }
}

// A product that goes on from one part of the rows to the next has the bits of the whole.
TEST(Dispatch, WeightGradientsGoOnFromRoundToRound) {
  constexpr int64_t kGroups = 3, kRows = 40, kOutputs = 37, kInputs = 29, kExperts = 2;
  Attrs attrs{{"experts", kExperts}, {"blocks", 1}, {"filled", 1.0}};
  auto value = [](int64_t group, int64_t row, int64_t i) {
    return std::sin(static_cast<double>(group * 7919 + row * 104729 + i * 31));
  };
  auto part = [&](int64_t first, int64_t rows, const Numbers& sum) {
    Numbers dy, x, experts;
    for (int64_t group = 0; group < kGroups; ++group)
      for (int64_t row = first; row < first + rows; ++row) {
        for (int64_t i = 0; i < kOutputs; ++i) dy.push_back(value(group, row, i));
        for (int64_t i = 0; i < kInputs; ++i) x.push_back(value(group, row, 1000 + i));
        experts.push_back(static_cast<double>((group + row * 3) % 5 % kExperts));
      }
    KernelRun run{
        .def = ops::expert_rows_weight_gradient,
        .attrs = attrs,
        .types = {f64({1, kGroups, rows, kOutputs}), f64({1, kGroups, rows, kInputs}), i32({1, kGroups, rows})},
        .inputs = {dy, x, experts},
        .real = DType::f32,
        .threads = 2};
    if (!sum.empty()) run.attrs.set("accumulate", int64_t{1}), run.first_output = sum;
    return run_kernel(run)[0];
  };
  Numbers whole = part(0, kRows, {});
  for (int64_t capacity : {1, 3, 13, 20, 39}) {
    Numbers sum;
    for (int64_t first = 0; first < kRows; first += capacity) sum = part(first, std::min(capacity, kRows - first), sum);
    EXPECT_EQ(sum, whole) << capacity;
  }
}

// A row's product does not depend on how many stand beside it.
TEST(Dispatch, ProductsOfARowAreTheSameAmongOthers) {
  constexpr int64_t kRows = 70, kOutputs = 33, kInputs = 300;
  Attrs attrs{{"experts", 1}, {"blocks", 1}, {"filled", 1.0}};
  Numbers x, w;
  for (int64_t i = 0; i < kRows * kInputs; ++i) x.push_back(std::sin(static_cast<double>(i)));
  for (int64_t i = 0; i < kOutputs * kInputs; ++i) w.push_back(std::cos(static_cast<double>(i)));
  auto products = [&](int64_t rows) {
    Numbers part(x.begin(), x.begin() + rows * kInputs);
    return run_kernel({.def = ops::expert_rows,
                       .attrs = attrs,
                       .types = {f64({1, 1, rows, kInputs}), f64({kOutputs, kInputs}), i32({1, 1, rows})},
                       .inputs = {part, w, Numbers(static_cast<size_t>(rows), 0.0)},
                       .real = DType::f32,
                       .threads = 1})[0];
  };
  Numbers all = products(kRows);
  for (int64_t rows : {1, 2, 5, 64, 65}) {
    Numbers few = products(rows);
    EXPECT_TRUE(std::equal(few.begin(), few.end(), all.begin())) << rows;
  }
}

// Rows without an expert are passed over, and hold zeros.
TEST(Dispatch, EmptyRowsGiveZeros) {
  Attrs attrs{{"experts", 4}, {"blocks", 2}, {"filled", 0.5}};
  TensorTypes types{f64({1, 1, 4, 1}), f64({4, 1}), i32({1, 1, 4})};
  Numbers y = run_op(ops::expert_rows, attrs, types, {{1, 2, 3, 4}, {10, 20, 30, 40}, {1, -1, -1, 2}})[0];
  EXPECT_EQ(y, (Numbers{20, 0, 0, 120}));
  Numbers dx =
      run_op(ops::expert_rows_input_gradient, attrs, types, {{1, 2, 3, 4}, {10, 20, 30, 40}, {1, -1, -1, 2}})[0];
  EXPECT_EQ(dx, (Numbers{20, 0, 0, 120}));
  TensorTypes gradient{f64({1, 1, 4, 1}), f64({1, 1, 4, 1}), i32({1, 1, 4})};
  Numbers dw =
      run_op(ops::expert_rows_weight_gradient, attrs, gradient, {{1, 2, 3, 4}, {5, 6, 7, 8}, {1, -1, -1, 2}})[0];
  EXPECT_EQ(dw, (Numbers{0, 5, 32, 0}));
}

}  // namespace
}  // namespace sextant
