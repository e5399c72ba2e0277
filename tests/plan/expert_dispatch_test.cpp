// How tokens get to experts, decided from sizes: closed forms counted here by hand, and the bytes of the messages that
// Programs then have.
#include "nn/expert_dispatch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/error.h"
#include "cost/machine_file.h"
#include "cost/planned_target.h"
#include "cost/price.h"
#include "models/presets.h"
#include "ops/row_queues.h"
#include "run/programs.h"

namespace sextant {

namespace {

// OLMoE: 64 experts, 8 for a token.
RoutedTokens olmoe(int64_t ranks) {
  return {.tokens = 4096, .per_token = 8, .experts = 64, .ranks = ranks};
}

TEST(ExpertDispatchSizes, TokensThatReachARank) {
  // None of 2 draws without return among 8 experts is one of a rank's two: 6/8 · 5/7.
  EXPECT_DOUBLE_EQ((RoutedTokens{.tokens = 1, .per_token = 2, .experts = 8, .ranks = 4}.reaches_a_rank()),
                   1 - 6.0 / 8 * 5 / 7);
  // All experts are chosen.
  EXPECT_DOUBLE_EQ((RoutedTokens{.tokens = 1, .per_token = 4, .experts = 4, .ranks = 2}.reaches_a_rank()), 1);
  // One of four groups is open, which two ranks of two experts each have: 1/4 · (1 - 2/4).
  EXPECT_DOUBLE_EQ(
      (RoutedTokens{.tokens = 1, .per_token = 1, .experts = 16, .ranks = 8, .expert_groups = 4, .keep_groups = 1}
           .reaches_a_rank()),
      0.125);
}

TEST(ExpertDispatchSizes, RowsForAnyRouting) {
  DispatchRows rows = dispatch_rows(olmoe(16), ExpertDispatch::rows, 0);
  EXPECT_EQ(rows.capacity, 4096 * 4);  // four experts on a rank
  EXPECT_EQ(rows.copies, rows.capacity);
  EXPECT_EQ(rows.rounds, 1);
  DispatchRows tokens = dispatch_rows(olmoe(16), ExpertDispatch::tokens, 0);
  EXPECT_EQ(tokens.capacity, 4096 * 4);
  EXPECT_EQ(tokens.copies, 4096);
  EXPECT_EQ(tokens.rounds, 1);
}

TEST(ExpertDispatchSizes, RowsOfACapacity) {
  DispatchRows tokens = dispatch_rows(olmoe(8), ExpertDispatch::tokens, 1.25);
  EXPECT_EQ(tokens.capacity, 5120);  // 1.25 · 4096 · 8 / 8
  // 56/64 · 55/63 · … · 49/57 have none there.
  double none = 1;
  for (double i = 0; i < 8; ++i) none *= (56 - i) / (64 - i);
  EXPECT_EQ(tokens.copies, static_cast<int64_t>(std::ceil(1.25 * 4096 * (1 - none))));
  EXPECT_EQ(tokens.tokens, 640);  // with all eight experts there
  EXPECT_EQ(tokens.rounds, 7);
  // Rows of one token are not divided.
  EXPECT_EQ(dispatch_rows({.tokens = 4, .per_token = 4, .experts = 64, .ranks = 16}, ExpertDispatch::tokens, 1).rounds,
            4);
}

// Experts that drop what is above 640 tokens: eight of them take no more, whatever the routing is.
TEST(ExpertDispatchSizes, RowsForWhatExpertsTake) {
  RoutedTokens routed = olmoe(8);
  routed.most_of_expert = 640;
  for (ExpertDispatch dispatch : {ExpertDispatch::rows, ExpertDispatch::tokens, ExpertDispatch::gather}) {
    DispatchRows rows = dispatch_rows(routed, dispatch, 0);
    EXPECT_EQ(rows.most, 5120);
    EXPECT_EQ(rows.capacity, 5120);
    EXPECT_EQ(rows.rounds, 1);
  }
  routed.most_of_expert = 100;
  EXPECT_EQ(dispatch_rows(routed, ExpertDispatch::automatic, 0).dispatch, ExpertDispatch::rows);
  EXPECT_EQ(dispatch_rows(routed, ExpertDispatch::automatic, 0).copies, 800);
}

TEST(ExpertDispatchSizes, WhatSendsLeastIsTaken) {
  auto taken = [](const RoutedTokens& routed, double capacity) {
    return word_of(dispatch_rows(routed, ExpertDispatch::automatic, capacity).dispatch);
  };
  EXPECT_EQ(taken(olmoe(8), 0), "gather") << "a copy of every token beside eight";
  EXPECT_EQ(taken(olmoe(64), 0), "rows") << "one expert on a rank: as many copies, and fewer numbers beside them";
  EXPECT_EQ(taken(olmoe(8), 1.25), "tokens") << "0.83 of the tokens beside 1.25 and 1";
  EXPECT_EQ(taken(olmoe(8), 1.6), "gather") << "copies of nearly all tokens, which are then written once more";
  EXPECT_EQ(taken(olmoe(32), 1.5), "rows") << "few tokens have two experts on a rank";
  EXPECT_EQ(taken({.tokens = 4096, .per_token = 8, .experts = 128, .ranks = 16}, 1.5), "tokens");
}

LoweredRun lowered(const char* dispatch, double capacity, int64_t microbatch = 1) {
  ModelSpec spec = find_preset("mixtral-8x7b")->spec;
  spec.layers = 1;
  RunConfig run;
  run.mesh = {
      .dp = 4, .ep = 4, .expert_capacity = capacity, .expert_dispatch = *value_of_word<ExpertDispatch>(dispatch)};
  run.batch = {.sequences = 4 * microbatch, .microbatch = microbatch, .seq = 256};
  run.train.eval_every = 0;
  return lower_run(run, spec, planned_target(own_profile()), Checks::none);
}

// Of all messages of a step that bring a token's row to experts or back.
std::map<Collective, double> message_bytes(const LoweredRun& run) {
  Machine machine = load_machine("h100-sxm");
  Pricer pricer(machine, machine.tables, own_profile());
  std::map<Collective, double> bytes;
  const Program& program = run.programs.train.front();
  for (const Region& region : program.regions)
    for (const Op& op : region.ops) {
      OpPrice price = pricer.price(program, op);
      if (price.message) bytes[*price.message] += price.bytes;
    }
  return bytes;
}

// Two experts of eight, two on each of four ranks, T = 256 tokens of 4096 numbers: a message has rows for all four
// ranks, four times a step (there and back, forward and backward), beside their experts, weights and gradients of
// weights.
TEST(ExpertDispatchSizes, MessagesHaveTheRowsThatArePlanned) {
  constexpr double kTokens = 256, kWidth = 4096 * 2, kNumbers = 3 * 4;
  double per_copy = 4 * 4 * kWidth, per_row = 4 * kNumbers;
  auto all_to_all = [](const char* dispatch, double capacity) {
    return message_bytes(lowered(dispatch, capacity))[Collective::all_to_all];
  };
  EXPECT_EQ(all_to_all("rows", 0), 2 * kTokens * (per_copy + per_row));
  EXPECT_EQ(all_to_all("rows", 1.5), 192 * (per_copy + per_row));
  EXPECT_EQ(all_to_all("tokens", 0), kTokens * per_copy + 2 * kTokens * per_row);
  // 1 - 6/8 · 5/7 of the tokens, 1.5 times.
  EXPECT_EQ(all_to_all("tokens", 1.5), 179 * per_copy + 192 * per_row);
  EXPECT_EQ(all_to_all("gather", 0), 0);
}

TEST(ExpertDispatchSizes, ThePlanTellsWhatWasChosen) {
  for (const char* dispatch : {"rows", "tokens", "gather"}) {
    LoweredRun run = lowered(dispatch, 1.5);
    for (const Region& region : run.programs.train.front().regions)
      for (const Op& op : region.ops)
        if (std::optional<RowQueues> queues = row_queues_of(op)) {
          EXPECT_EQ(word_of(queues->dispatch), dispatch);
          EXPECT_EQ(queues->capacity, 192);
        }
  }
}

// Numbers have 32 bits. Of 2^28 tokens and 8 experts a row's token and expert take 2^31, of 2^29 a slot's do; rows for
// any routing of 2^28 tokens, on each of four ranks one for each of two experts, are 2^31.
TEST(ExpertDispatchSizes, MoreRowsThanNumbersAreRefused) {
  struct Refused {
    const char* dispatch;
    double capacity;
    int64_t microbatch;
    const char* key;
    const char* said;
  };
  for (const Refused& c :
       {Refused{"tokens", 1, 1 << 20, "mesh.expert_dispatch",
                "\"tokens\" gives 2147483648 numbers to the 268435456 tokens that go to experts together; expected at "
                "most 2147483647, tokens × experts; \"rows\" needs fewer numbers"},
        Refused{"rows", 0, 1 << 20, "batch.microbatch", "\"rows\" gives 2147483648 numbers to the 268435456 tokens"},
        Refused{"gather", 0, 1 << 22, "batch.microbatch", "\"gather\" gives 8589934592 numbers"}}) {
    SCOPED_TRACE(c.dispatch);
    try {
      lowered(c.dispatch, c.capacity, c.microbatch);
      FAIL() << "nothing was said";
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(c.key), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(c.said), std::string::npos) << error.what();
    }
  }
  EXPECT_NO_THROW(lowered("rows", 1, 1 << 20));
  EXPECT_NO_THROW(lowered("tokens", 1, 1 << 19));
}

}  // namespace

}  // namespace sextant
