// How tokens get to the ranks of their experts, and how many rows that takes: decided from sizes alone, before anything
// runs.
#pragma once

#include <cstdint>

#include "ir/plan.h"

namespace sextant {

// The tokens of one group (ops/dispatch.cpp) and the experts among which they go.
struct RoutedTokens {
  int64_t tokens = 0, per_token = 0;
  int64_t experts = 0, ranks = 1;              // that experts are divided among
  int64_t expert_groups = 1, keep_groups = 1;  // a token's experts are in keep_groups of so many groups
  int64_t most_of_expert = 0;                  // tokens that an expert takes (ops/drop_slots.cpp); 0: all

  // Of one token, at most: it has each of its experts once.
  int64_t most_on_a_rank() const;
  // That a token has an expert on a given rank, where every choice of experts is as likely.
  double reaches_a_rank() const;
};

// Rows that a group has for the experts of one rank.
struct DispatchRows {
  ExpertDispatch dispatch = ExpertDispatch::rows;  // never automatic
  int64_t capacity = 0;                            // rows of one token and one expert each
  int64_t most = 0;                                // no routing asks for more of them
  int64_t copies = 0;                              // of tokens that travel
  int64_t tokens = 0;                              // that a round takes whatever their routing is, where that is tokens
  int64_t rounds = 1;                              // that serve any routing

  // Cost in rows of one token's width: the copies that travel and, with dispatch by tokens, the local memory traffic to
  // read them and write rows.
  double cost() const;
};

// capacity: in units of the balanced load; 0: for any routing.
DispatchRows dispatch_rows(const RoutedTokens& routed, ExpertDispatch dispatch, double capacity);

}  // namespace sextant
