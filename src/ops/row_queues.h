// What the op that maps slots to rows says of how tokens go to experts (ops/dispatch.cpp, ops/token_copies.cpp).
#pragma once

#include <cstdint>
#include <optional>

#include "base/units.h"
#include "ir/op.h"
#include "ir/plan.h"
#include "ops/ops.h"

namespace sextant {

struct RowQueues {
  ExpertDispatch dispatch = ExpertDispatch::rows;
  int64_t capacity = 0, most = 0;  // rows that are there in a round, and those that some routing asks for
  int64_t copies = 0;              // of tokens that travel for those rows
  int64_t round = 0, rounds = 1;   // which this is, and how many serve any routing
};

// Of such an op; of others nothing.
inline std::optional<RowQueues> row_queues_of(const Op& op) {
  if (op.def != &ops::dispatch_map && op.def != &ops::copies_map) return std::nullopt;
  RowQueues queues{
      .capacity = op.attrs.integer("capacity"), .most = op.attrs.integer("most"), .round = op.attrs.integer("round")};
  queues.copies = queues.capacity;
  queues.rounds = ceil_div(queues.most, queues.capacity);
  if (op.def == &ops::copies_map) {
    queues.dispatch = ExpertDispatch::tokens;
    queues.copies = op.attrs.integer("copies");
    queues.rounds = op.attrs.integer("rounds");
  } else if (op.attrs.integer_or("gathered", 0) != 0) {
    queues.dispatch = ExpertDispatch::gather;
    queues.copies = op.attrs.integer("batch") * op.attrs.integer("positions");
  }
  return queues;
}

}  // namespace sextant
