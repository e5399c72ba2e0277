// How a parameter's initial elements come about, piece by piece, on any device.
#pragma once

#include <cstdint>

#include "base/rng.h"
#include "ir/value.h"

namespace sextant {

// A rectangular piece of a value whose elements are drawn, each from its index in the whole tensor.
struct DrawnPiece {
  Init init;
  Random random;
  int64_t first = 0;        // index in the whole tensor of the piece's first element
  int64_t whole_width = 1;  // indices from row to row there
  int64_t rows = 0, columns = 0;
  int64_t at = 0, stride = 0;  // first local element, and local elements from row to row

  float element(int64_t row, int64_t column) const;
};

}  // namespace sextant
