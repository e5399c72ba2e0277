// Tensor: one operand of a kernel at its address, on any device; and what an op's scratch is asked for with.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/dtype.h"
#include "base/shape.h"
#include "ir/attrs.h"
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
      if (i >= span.local && i < span.local + span.count) return span.global + i - span.local;
    return -1;
  }

  // The inverse: -1 where another rank holds it.
  int64_t local_index(int dim, int64_t global) const {
    if (!placement) return global;
    for (const Span& span : placement->dims[static_cast<size_t>(dim)])
      if (global >= span.global && global < span.global + span.count) return span.local + global - span.global;
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

// Tensors of these types, nowhere yet.
inline std::vector<Tensor> tensors_of(const LocalTypes& types) {
  std::vector<Tensor> tensors;
  for (const LocalType& t : types) tensors.push_back({nullptr, t.dtype, t.shape, nullptr});
  return tensors;
}

// Whether the buffer that an accumulating op adds onto already holds a part of this step's sum.
enum class SumState : uint8_t {
  fresh,    // no: the op overwrites it
  running,  // yes
};

struct WorkspaceQuery {
  const Attrs& attrs;
  std::span<const Tensor> in;  // data is null
  std::span<const Tensor> out;
  int threads;
  bool repeatable = false;  // two runs must give the same bits, which may take more room
};

}  // namespace sextant
