// Shapes of groups of tokens and of the rows that they fill (dispatch.cpp, token_copies.cpp): [a c] groups of `batch`
// sequences by `positions` positions each, in [b s].
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "ir/op_def.h"

namespace sextant {

// The shape for all blocks of experts, where each group of these tokens has `of_block` entries for one block.
inline GlobalShape of_all_blocks(const Attrs& attrs, const GlobalShape& tokens, int64_t of_block) {
  return {tokens[0] / attrs.integer("batch"), tokens[1] / attrs.integer("positions"),
          attrs.integer("blocks") * of_block};
}

// A number for each number of rounds but all, at least one.
inline TensorType lost_in_rounds(int64_t rounds) {
  return {DType::f32, {std::max<int64_t>(1, rounds - 1)}};
}

// The tokens of these groups: [a c] become [b s].
inline GlobalShape tokens_of_groups(const Attrs& attrs, const GlobalShape& groups, int64_t width) {
  return {groups[0] * attrs.integer("batch"), groups[1] * attrs.integer("positions"), width};
}

// Rows as wide as in[0], one for each number of in[1].
inline TensorTypes rows_as_numbered(const Attrs&, std::span<const TensorType> in) {
  const GlobalShape& rows = in[1].shape;
  return {{in[0].dtype, {rows[0], rows[1], rows[2], in[0].shape.last()}}};
}

}  // namespace sextant
