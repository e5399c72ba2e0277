// A tensor as it lies in a file: bytes in row-major, little-endian order, at any alignment. It owns nothing and is
// valid as long as the reader it came from. "Rows" are the slices along dim 0; a tensor of rank 0 is one row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "ckpt/file_dtype.h"

namespace sextant {

struct TensorView {
  std::string place;  // for messages: the file and the tensor's name
  FileDType dtype = FileDType::f32;
  GlobalShape shape;
  std::span<const std::byte> bytes;
};

struct RowRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t count() const { return end - begin; }
};

inline int64_t row_count(const GlobalShape& shape) {
  return shape.rank() == 0 ? 1 : shape[0];
}

// Elements of one row.
inline int64_t row_length(const GlobalShape& shape) {
  int64_t n = 1;
  for (int dim = 1; dim < shape.rank(); ++dim) n *= shape[dim];
  return n;
}

}  // namespace sextant
