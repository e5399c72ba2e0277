// Between tensors in files and float matrices in memory. A tensor counts as a matrix of rows (tensor_view.h). Rounding
// is to nearest, ties to even; NaN stays NaN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ckpt/tensor_view.h"

namespace sextant {

enum class Transpose { no, yes };

// Rows of the tensor, or, with Transpose::yes, of the transposed tensor (rank 2), packed into `destination`, whose size
// must be exactly that. F64, F32, BF16 and F16 can be loaded; anything else is a UserError.
void load_rows(const TensorView& source, RowRange rows, Transpose transpose, std::span<float> destination);

// A row-major matrix in memory.
struct FloatMatrix {
  std::span<const float> values;
  int64_t columns = 0;
  int64_t rows() const { return columns == 0 ? 0 : static_cast<int64_t>(values.size()) / columns; }
};

// The inverse, one block of file rows at a time, as SafetensorsWriter::stream asks for them: rows of `source`, or of
// its transpose, as F32, BF16 or F16.
void store_rows(const FloatMatrix& source, RowRange rows, Transpose transpose, FileDType dtype,
                std::span<std::byte> destination);

// The least magnitude that becomes infinite in this type, F32, BF16 or F16.
float overflow_of(FileDType dtype);

}  // namespace sextant
