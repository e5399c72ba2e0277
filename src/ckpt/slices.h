// The part of a value that a rank holds, as rectangular pieces of the whole tensor: what it draws, reads and writes of
// a checkpoint. Files hold whole tensors, so they say nothing of the mesh that wrote them.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/executor.h"
#include "mesh/placement.h"

namespace sextant {

// From the local bytes (`from`) to the whole tensor (`to`).
std::vector<Box> held_boxes(const StateView& state, const Value& value);

// Of the ranks that hold the same bytes, one writes them. (A weight that two pipeline stages share is written twice,
// with the same bytes.)
bool is_writer(const StateView& state, const Value& value);

// A piece of at most two dims as rows and columns; scalars and vectors have one column.
struct Piece {
  int64_t row = 0, column = 0;  // in the tensor that checkpoints store
  int64_t rows = 0, columns = 0;
  int64_t at = 0;      // first element in local memory
  int64_t stride = 0;  // local elements from row to row
};
std::vector<Piece> held_pieces(const StateView& state, const Value& value);

}  // namespace sextant
