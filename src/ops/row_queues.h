// How tokens go to experts, read from the attrs of the op that maps slots to rows (ops/dispatch.cpp,
// ops/token_copies.cpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/units.h"
#include "ir/graph.h"
#include "ir/op.h"
#include "ir/plan.h"
#include "ops/ops.h"

namespace sextant {

struct RowQueues {
  ExpertDispatch dispatch = ExpertDispatch::rows;
  int64_t capacity = 0, most = 0;  // rows that are there in a round, and those that some routing asks for
  int64_t tokens = 0;              // of a group
  int64_t copies = 0;              // of them that travel for those rows
  int64_t round = 0, rounds = 1;   // which this is, and how many serve any routing
};

// Of such an op; of others nothing.
inline std::optional<RowQueues> row_queues_of(const Op& op) {
  if (op.def != &ops::dispatch_map && op.def != &ops::copies_map) return std::nullopt;
  RowQueues queues{
      .capacity = op.attrs.integer("capacity"), .most = op.attrs.integer("most"), .round = op.attrs.integer("round")};
  queues.tokens = op.attrs.integer("batch") * op.attrs.integer("positions");
  queues.copies = queues.capacity;
  queues.rounds = ceil_div(queues.most, queues.capacity);
  if (op.def == &ops::copies_map) {
    queues.dispatch = ExpertDispatch::tokens;
    queues.copies = op.attrs.integer("copies");
    queues.rounds = op.attrs.integer("rounds");
  } else if (op.attrs.integer_or("gathered", 0) != 0) {
    queues.dispatch = ExpertDispatch::gather;
    queues.copies = queues.tokens;
  }
  return queues;
}

// How often rows go to experts in each layer, and how often they would have to for any routing.
struct GraphRounds {
  int64_t done = 1, all = 1;
};
inline GraphRounds expert_rounds(const Graph& graph) {
  GraphRounds rounds;
  for (const Op& op : graph.ops)
    if (std::optional<RowQueues> queues = row_queues_of(op))
      rounds = {std::max(rounds.done, queues->round + 1), std::max(rounds.all, queues->rounds)};
  return rounds;
}

// Of such an op: how many numbers tell apart a group's slots, its rows, and what else these say.
inline int64_t numbers_of_rows(const Graph& graph, const Op& op) {
  RowQueues queues = *row_queues_of(op);
  int64_t blocks = op.attrs.integer("blocks"), top_k = graph[op.inputs[0]].shape.last();
  int64_t numbers = std::max(queues.tokens * top_k, blocks * queues.capacity);
  if (queues.dispatch != ExpertDispatch::tokens) return numbers;
  return std::max(numbers, queues.tokens * blocks * op.attrs.integer("experts_per_block"));
}

}  // namespace sextant
