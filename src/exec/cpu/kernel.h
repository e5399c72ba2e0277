// What a CPU kernel is: a function on bound tensors, and the scratch it needs. A kernel file bears its op file's name and
// defines one CpuKernel per op in it; a missing one is a link error.
//
// Kernels neither throw, log nor allocate. They run for f32 (fast) and f64 (for finite differences) alike: the plain template
// is the truth, a fast path may stand beside it and is tested against it. Results must not depend on the thread count:
// split work into tasks by shape alone, and add partial sums in task order.
#pragma once

#include <cstddef>
#include <span>

#include "base/threads.h"
#include "base/units.h"
#include "ir/attrs.h"
#include "ir/op_def.h"
#include "ops/ops.h"

namespace sextant {

// One operand at its address. Row-major, contiguous, aligned to 64 bytes.
struct Tensor {
  void* data = nullptr;
  DType dtype = DType::f32;
  LocalShape shape;

  template <class T>
  T* as() const { return static_cast<T*>(data); }
  int64_t count() const { return shape.count(); }
};

struct KernelCall {
  std::span<const Tensor> in;
  std::span<const Tensor> out;
  const Attrs& attrs;
  std::byte* workspace;  // as many bytes as the kernel asked for, aligned to 64
  ThreadTeam& team;

  // Output 0 is added onto what its buffer holds (ops whose definition supports it).
  bool accumulate() const { return attrs.integer_or("accumulate", 0) != 0; }
};

struct WorkspaceQuery {
  const Attrs& attrs;
  std::span<const Tensor> in;   // data is null
  std::span<const Tensor> out;
  int threads;
};

struct CpuKernel {
  void (*run)(const KernelCall&) = nullptr;               // null: this executor cannot run the op; bind says so
  Bytes (*workspace)(const WorkspaceQuery&) = nullptr;    // null: none
};

namespace cpu {
#define OP(name) extern const CpuKernel name;
#include "ops/ops.def"
#undef OP
}  // namespace cpu

const CpuKernel& cpu_kernel(const OpDef& def);

// Calls body.template operator()<T>() with T = float or double by the dtype of the op's floating-point data.
template <class Body>
void for_real_type(DType dtype, const Body& body) {
  if (dtype == DType::f64)
    body.template operator()<double>();
  else
    body.template operator()<float>();
}

}  // namespace sextant
