// The random bits that an optimizer's step rounds by: Philox, keyed by the tensor's name in checkpoints and counted by
// the step and the element's row and column in that tensor. Whoever holds an element, on whichever mesh, rounds it
// alike.
#pragma once

#include <cstdint>

#include "base/rng.h"
#include "exec/tensor.h"
#include "ir/attrs.h"

namespace sextant {

// 16 bits for each of what is rounded.
struct RoundingBits {
  uint32_t first_moment, second_moment, weight;
};

// Where an element stands in its tensor; of a vector all stand in row 0.
struct RoundingPlace {
  int64_t row, column;
};

// Philox gives four words for one count: two neighbouring columns share it.
inline constexpr int64_t kRoundingColumns = 2;

// Of one op, by its attrs `key` and `first_row`, and the step.
class RoundingWords {
 public:
  RoundingWords(const Attrs& attrs, int64_t step)
      : key_(static_cast<uint64_t>(attrs.integer_or("key", 0))),
        step_(static_cast<uint64_t>(step)),
        first_row_(attrs.integer_or("first_row", 0)) {}

  RoundingBits at(const RoundingPlace& place) const {
    std::array<uint32_t, 4> words = philox(
        key_, step_, static_cast<uint64_t>(place.row) << 32 | static_cast<uint64_t>(place.column / kRoundingColumns));
    size_t own = place.column % kRoundingColumns == 0 ? 0 : 2;  // a column of -1 is padding, and any bits will do
    return {words[own] & 0xFFFF, words[own] >> 16, words[own + 1] & 0xFFFF};
  }

  // Of local element (row, column) of a matrix, or element `column` of a vector.
  RoundingPlace place_of(const Tensor& weight, int64_t row, int64_t column) const {
    if (weight.shape.rank() == 0) return {0, first_row_};
    if (weight.shape.rank() == 1) return {0, weight.global_index(0, column) + first_row_};
    return {weight.global_index(0, row) + first_row_, weight.global_index(1, column)};
  }

 private:
  uint64_t key_, step_;
  int64_t first_row_;
};

}  // namespace sextant
