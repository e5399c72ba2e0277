// A CPU kernel is a function on bound tensors. A kernel file has the name of its op file and defines one CpuKernel per
// op in it; a missing one is a link error. The scratch that kernels need is declared in targets/cpu.
//
// Kernels do not throw (except when messages or the disk fail), log or allocate. They run for f32 (fast) and f64 (for
// finite differences) alike: the plain template is the reference; a fast path is optional and is tested against it.
// Results must not depend on the thread count: split work into tasks by shape alone, and add partial sums in task
// order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/threads.h"
#include "base/units.h"
#include "exec/cpu/wire.h"
#include "exec/tensor.h"
#include "ir/attrs.h"
#include "ir/op_def.h"
#include "ir/program.h"
#include "ops/ops.h"

namespace sextant {

class NvmeFile;

namespace cpu {
struct GemmCheck;
}

struct KernelCall {
  std::span<const Tensor> in;
  std::span<const Tensor> out;
  const Attrs& attrs;
  std::byte* workspace;  // as many bytes as the target plans for the op, aligned to 64
  ThreadTeam& team;
  int microbatch = 0;
  SumState sum = SumState::running;
  cpu::GemmCheck* check = nullptr;  // of the products that it makes (kernels/gemm_check.h); null: none

  // Output 0 is added onto what its buffer holds (ops whose definition supports it).
  bool accumulate() const { return sum == SumState::running && attrs.integer_or("accumulate", 0) != 0; }
};

// Inputs for preparing an op that communicates with other ranks or uses the nvme file, when it is bound.
struct Preparation {
  const Op& op;
  const Program& program;
  int rank;
  Coordinate at;
  Wire* wire;                // null when there is no other rank
  NvmeFile* file = nullptr;  // of the nvme space; null where the Program keeps nothing there
};

// An op made ready for one rank: whom to talk to, what to pack where.
class PreparedKernel {
 public:
  virtual ~PreparedKernel() = default;
  virtual void run(const KernelCall& call) = 0;
  // Called before the op's region runs for a microbatch, and for every microbatch at the end of a step: messages whose
  // bytes are about to be reused must have arrived.
  virtual void settle(int /*microbatch*/) {}
  // Whether it is a collective of ranks that run the same Program: its messages can be checked (comm/payload_check.h).
  virtual bool is_collective() const { return false; }
};

struct CpuKernel {
  void (*run)(const KernelCall&) = nullptr;  // null, with `prepare`: this executor cannot run the op; bind says so
  // Instead of `run`, where it gives a kernel.
  std::unique_ptr<PreparedKernel> (*prepare)(const Preparation&) = nullptr;
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
