// What dispatch_map says of the rows in which slots go to experts (ops/dispatch.cpp).
#pragma once

#include <cstdint>
#include <optional>

#include "ir/op.h"
#include "ops/ops.h"

namespace sextant {

struct RowQueues {
  int64_t capacity = 0, most = 0;  // rows that are there in a round, and those that some routing asks for
  int64_t round = 0;
};

// Of such an op; of others nothing.
inline std::optional<RowQueues> row_queues_of(const Op& op) {
  if (op.def != &ops::dispatch_map) return std::nullopt;
  return RowQueues{op.attrs.integer("capacity"), op.attrs.integer("most"), op.attrs.integer("round")};
}

}  // namespace sextant
