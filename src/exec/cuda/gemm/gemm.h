// GEMMs on the GPU: C (+)= op(A)·op(B), row-major, through cuBLASLt, with f32 accumulation; of fp8 operands with scales
// in device memory. For every shape
// the library's candidates are timed once on random data and the fastest is kept, also on disk (by shape, device and
// library version), so that the next run starts at once. Repeatable runs and runs of several ranks take the library's
// first choice instead (Tuning).
#pragma once

#include <cuda_runtime.h>

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/dtype.h"
#include "exec/cuda/runtime/device.h"
#include "exec/tensor.h"

namespace sextant {

enum class MatrixOrder : uint8_t { as_is, transposed };

enum class GemmEpilogue : uint8_t {
  none,
  bias,           // C = AB + bias, one number per column
  gelu,           // aux = AB, C = gelu(aux)
  gelu_bias,      // aux = AB + bias, C = gelu(aux)
  gelu_gradient,  // C = AB·gelu'(aux)
  row_sums,       // bias = the sums over A's columns, which are added up anyway: of op(A), one f32 per row of C
};

// Scales that the numbers of fp8 operands are multiplied by. fp8 operands are contiguous along k: A as is, B
// transposed.
enum class GemmScales : uint8_t {
  none,
  tensors,           // one f32 for each operand
  tiles,             // one for every 128 along k, of each row of A and of each column of B
  tiles_and_blocks,  // of A as above, of B one for 128 × 128
};

// How fp8 units add up.
enum class GemmSums : uint8_t { in_f32, fast };  // fast: with fewer bits, faster

struct GemmShape {
  int64_t m = 0, n = 0, k = 0;
  MatrixOrder a_order = MatrixOrder::as_is, b_order = MatrixOrder::as_is;  // as_is: A is m×k, B is k×n
  DType in = DType::f32, out = DType::f32;
  GemmEpilogue epilogue = GemmEpilogue::none;
  int64_t a_stride = 0, c_stride = 0;  // elements from row to row as stored; 0: rows lie side by side
  int64_t b_stride = 0;
  GemmScales scales = GemmScales::none;
  DType scaled_b = DType::e4m3;  // the type of B where there are scales; else it is that of A
  GemmSums sums = GemmSums::in_f32;
  DType b_in() const { return scales == GemmScales::none ? in : scaled_b; }
  auto operator<=>(const GemmShape&) const = default;

  std::string text() const;  // "65536x768x3072 nt bf16 f32 bias", the name in the cache
};

struct GemmOperands {
  const void* a;
  const void* b;
  void* c;
  void* bias = nullptr;  // read, or written with row_sums
  void* aux = nullptr;
  SumState sum = SumState::fresh;   // running: C is added onto (no epilogue then)
  const float* a_scales = nullptr;  // as GemmScales says, in device memory
  const float* b_scales = nullptr;
};

class GemmPlan;
class GemmTuner;
struct DeviceGemmCheck;

class GemmLibrary {
 public:
  explicit GemmLibrary(const CudaDevice& device);
  ~GemmLibrary();

  // Times candidates when the shape is new. Not during a capture. RunError when the library cannot do it.
  const GemmPlan& plan(const GemmShape& shape);
  // Null when the library cannot do it.
  const GemmPlan* find_plan(const GemmShape& shape);

  // Whether one GEMM with an epilogue is faster than another followed by a kernel that moves this many bytes.
  // Without timings (repeatable runs), yes.
  bool pays(const GemmPlan& with_epilogue, const GemmPlan& without, int64_t bytes_more) const;
  // The workspace has kGemmWorkspace bytes. With a check, what that asks for stands on the stream behind the GEMM.
  void run(const GemmPlan& plan, const GemmOperands& operands, std::byte* workspace, cudaStream_t stream,
           DeviceGemmCheck* check = nullptr) const;

 private:
  const CudaDevice& device_;
  void* handle_ = nullptr;
  std::map<GemmShape, std::unique_ptr<GemmPlan>> plans_;
  std::unique_ptr<GemmTuner> tuner_;  // null in repeatable runs
};

}  // namespace sextant
