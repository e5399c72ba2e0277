// A CUDA kernel is a function that puts work on a stream. A kernel file has the name of its op file and defines one
// CudaKernel per op in it; a missing one is a link error. The scratch that kernels need, and which of them are launched
// together, are declared in targets/cuda.
//
// Launching neither allocates, waits nor copies to or from the host, so that a region of a Program can be captured as a
// CUDA graph once and replayed: everything that changes between steps is read from device memory. Activations and
// weights are f32, bf16 or f16 (all operands of an op alike); sums and statistics (OpDef::wide) are f32; arithmetic is
// f32 throughout.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <span>

#include "base/units.h"
#include "exec/cuda/runtime/device.h"
#include "exec/tensor.h"
#include "ir/op_def.h"
#include "ir/program.h"
#include "ops/ops.h"

namespace sextant {

class CudaWires;
struct DeviceGemmCheck;

struct CudaCall {
  std::span<const Tensor> in;
  std::span<const Tensor> out;
  const Attrs& attrs;
  std::byte* workspace;  // as many bytes as the target plans for the op, aligned to 256
  const CudaDevice& device;
  cudaStream_t stream;
  int microbatch = 0;
  SumState sum = SumState::running;
  DeviceGemmCheck* check = nullptr;  // of the products that it makes; null: none is asked for

  // Output 0 is added onto what its buffer holds (ops whose definition supports it).
  bool accumulate() const { return sum == SumState::running && attrs.integer_or("accumulate", 0) != 0; }
};

// Inputs for preparing an op when it is bound: its operands at their addresses (slots may change the addresses later).
struct CudaPreparation {
  const Op& op;
  const Program& program;
  int rank;
  Coordinate at;
  std::span<const Tensor> in;
  std::span<const Tensor> out;
  CudaDevice& device;
  CudaWires* wires = nullptr;  // the ways to other ranks; null when there are none
};

// An op made ready: algorithms chosen, plans built, groups opened.
class PreparedCudaKernel {
 public:
  virtual ~PreparedCudaKernel() = default;
  virtual void launch(const CudaCall& call) = 0;
  // Whether launching only puts work on the stream. Ops that go through the host do not, and their region is never
  // captured.
  virtual bool capturable() const { return true; }
  // As in exec/cpu/kernel.h: messages whose bytes are about to be reused must have arrived.
  virtual void settle(int /*microbatch*/) {}
};

// Several ops of one kind that stand side by side and do not read each other's results, as one launch.
using CudaCalls = std::span<const CudaCall>;

struct SummedStates;  // runtime/summed_launch.h

struct CudaKernel {
  void (*launch)(const CudaCall&) = nullptr;  // null, with `prepare` and `launch_all`: cannot run; bind says so
  std::unique_ptr<PreparedCudaKernel> (*prepare)(const CudaPreparation&) = nullptr;  // instead of `launch`
  void (*launch_all)(CudaCalls) = nullptr;  // instead of `launch`: one launch for a run of such ops
  // Beside `launch_all`: the same, with checksums of the states it updates. Null: the executor reads them once more.
  void (*launch_all_summed)(CudaCalls, const SummedStates&) = nullptr;
};

namespace cuda {
#define OP(name) extern const CudaKernel name;
#include "ops/ops.def"
#undef OP
}  // namespace cuda

const CudaKernel& cuda_kernel(const OpDef& def);

}  // namespace sextant
