// Which pieces of a sequence that is split among the ranks of a ring see each other, at one step around it.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program.h"
#include "mesh/placement.h"

namespace sextant {

// Queries of one piece of the sequence that may see keys of another: all of them, or those on and below the diagonal.
struct PiecePair {
  Span q, k;
  int64_t diagonal;  // query i of the piece sees its keys up to i + diagonal
};

// The pairs of an attention_step of the rank at `at`: its own queries, and the keys of the rank `step` places back.
std::vector<PiecePair> visible_pairs(const Program& program, const Op& op, const Coordinate& at, const Value& qkv,
                                     const Value& kv);

}  // namespace sextant
