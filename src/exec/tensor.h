// Tensor: one operand of a kernel at its address, on any device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/dtype.h"
#include "base/shape.h"
#include "ir/plan.h"
#include "mesh/placement.h"

namespace sextant {

// Which elements of the global tensor an operand holds, dim by dim.
struct Placement {
  std::vector<std::vector<Span>> dims;
};

// One operand at its address. Row-major, contiguous, aligned to 64 bytes.
struct Tensor {
  void* data = nullptr;
  DType dtype = DType::f32;
  LocalShape shape;
  const Placement* placement = nullptr;  // null: all of it

  // The global index of local element `i` of a dim; -1 in padding.
  int64_t global_index(int dim, int64_t i) const {
    if (!placement) return i;
    for (const Span& span : placement->dims[static_cast<size_t>(dim)])
      if (i >= span.local && i < span.local + span.count) return span.global_at(i - span.local);
    return -1;
  }

  // The inverse: -1 where another rank holds it.
  int64_t local_index(int dim, int64_t global) const {
    if (!placement) return global;
    for (const Span& span : placement->dims[static_cast<size_t>(dim)])
      if (int64_t i = span.find(global); i >= 0) return span.local + i;
    return -1;
  }

  // How many elements of a dim are real; padding follows them.
  int64_t real_extent(int dim) const {
    if (!placement) return shape[dim];
    int64_t end = 0;
    for (const Span& span : placement->dims[static_cast<size_t>(dim)]) end = std::max(end, span.local + span.count);
    return end;
  }

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  int64_t count() const { return shape.count(); }
};

// Types and local shapes of tensors, the form in which queries to targets take them (targets/kernel_needs.h).
inline LocalTypes types_of(std::span<const Tensor> tensors) {
  LocalTypes types;
  for (const Tensor& tensor : tensors) types.push_back({tensor.dtype, tensor.shape});
  return types;
}

// Whether the buffer that an accumulating op adds onto already holds a part of this step's sum.
enum class SumState : uint8_t {
  fresh,    // no: the op overwrites it
  running,  // yes
};

}  // namespace sextant
