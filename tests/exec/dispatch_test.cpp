// Tokens to experts and back, whatever the routing is: every slot once, in its block's rows; what does not fit is
// counted. Whole numbers travel, so that there is nothing to tolerate.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

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

std::vector<Numbers> map_of(const DispatchCase& c) {
  Attrs attrs{{"batch", kGroupSequences},
              {"positions", c.positions()},
              {"blocks", c.spread.blocks},
              {"capacity", c.capacity},
              {"experts_per_block", c.spread.experts / c.spread.blocks}};
  return run_op(ops::dispatch_map, attrs, {i32({c.spread.sequences, c.spread.positions, c.spread.top_k})},
                {c.experts()});
}

// No routing needs more: a token has each of its experts once.
int64_t enough(const Spread& spread) {
  return kGroupSequences * spread.positions / 2 * std::min(spread.top_k, spread.experts / spread.blocks);
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
    Numbers rows = run_op(ops::dispatch, c.moves(), {tokens, c.map_type()}, {x, map[0]})[0];
    TensorType row_type = f64({spread.sequences, 2, c.rows(), 1});
    Numbers back = run_op(ops::combine, c.moves(), {row_type, c.map_type()}, {rows, map[0]})[0];
    for (size_t t = 0; t < x.size(); ++t) EXPECT_EQ(back[t], static_cast<double>(spread.top_k) * x[t]) << t;
    TensorType weight_type = f64({spread.sequences, spread.positions, spread.top_k});
    Numbers row_weights = run_op(ops::dispatch_weights, c.moves(), {weight_type, c.map_type()}, {weights, map[0]})[0];
    TensorType row_weight_type = f64({spread.sequences, 2, c.rows()});
    EXPECT_EQ(
        run_op(ops::dispatch_weights_backward, c.moves(), {row_weight_type, c.map_type()}, {row_weights, map[0]})[0],
        weights);
  }
}

// The excess of every group and block, counted here by hand.
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
      Numbers excess(lost.size());
      for (const auto& [place, count] : wanted)
        excess[place.first] += static_cast<double>(std::max<int64_t>(0, count - capacity));
      EXPECT_EQ(lost, excess) << capacity;
    }
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
