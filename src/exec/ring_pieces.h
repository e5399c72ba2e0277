// Which pieces of a sequence that is split among the ranks of a ring see each other, at one step around it.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program.h"
#include "mesh/placement.h"
#include "ops/attention_window.h"

namespace sextant {

// Queries of one piece of the sequence that may see keys of another: all of them, or those on and below the diagonal.
// Both have the same stride.
struct PiecePair {
  Span q, k;
  int64_t diagonal;  // query i of the piece sees its keys up to i + diagonal

  // How many positions query i stands after key 0.
  int64_t distance(int64_t i = 0) const { return q.global_at(i) - k.global; }
};

// The pairs of what one rank holds of a sequence, and what another one does: the two are cut alike.
std::vector<PiecePair> visible_pairs(const std::vector<Span>& queries, const std::vector<Span>& keys, KeyRange range);

// The pairs of an attention_step of the rank at `at`: its own queries, and the keys of the rank `step` places back.
std::vector<PiecePair> visible_pairs(const Program& program, const Op& op, const Coordinate& at, const Value& qkv,
                                     const Value& kv);

}  // namespace sextant
