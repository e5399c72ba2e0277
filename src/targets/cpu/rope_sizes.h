// The table of a rotary embedding on a CPU, the same for all heads and sequences of a call: for every position a cosine
// for every pair, then a sine; behind it the pairs' frequencies.
#pragma once

#include <cstdint>

#include "base/shape.h"
#include "ir/attrs.h"

namespace sextant::cpu {

struct RopeTable {
  int64_t front;  // how many elements of each head turn
  int64_t length;

  RopeTable(const Attrs& attrs, const LocalShape& qkv)
      : front(attrs.integer_or("rotary_dim", attrs.integer("head_dim"))), length(qkv[1]) {}

  int64_t pairs() const { return front / 2; }
  int64_t frequencies_at() const { return length * 2 * pairs(); }  // in doubles
  int64_t bytes() const { return (length + 1) * 2 * pairs() * int64_t{sizeof(double)}; }
};

}  // namespace sextant::cpu
