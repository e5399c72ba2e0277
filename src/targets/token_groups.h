// Where the tokens of groups stand (ops/dispatch.cpp): [a c] groups of batch × positions tokens in [b s].
#pragma once

#include <cstdint>

#include "base/shape.h"
#include "ir/attrs.h"

namespace sextant {

struct TokenGroups {
  TokenGroups(const Attrs& attrs, const LocalShape& groups)
      : batch(attrs.integer("batch")),
        positions(attrs.integer("positions")),
        across(groups[1]),
        count(groups[0] * groups[1]) {}

  constexpr int64_t tokens() const { return batch * positions; }  // of one group
  // The row of [b s] in which a group's token stands.
  constexpr int64_t row(int64_t group, int64_t token) const {
    int64_t sequence = group / across * batch + token / positions;
    return sequence * across * positions + group % across * positions + token % positions;
  }

  int64_t batch, positions, across, count;
};

}  // namespace sextant
