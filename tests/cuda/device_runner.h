// Runs one CUDA kernel on device copies of its operands. Enters: op, attrs and inputs as doubles, as for the CPU's
// kernels. Leaves: outputs as doubles. Outputs and workspace are filled with NaN before the run, and every buffer is
// followed by bytes that no kernel may touch.
#pragma once

#include <gtest/gtest.h>
#include <cstdint>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "exec/cuda/runtime/device.h"
#include "exec/cuda/runtime/kernel.h"
#include "exec/kernel_runner.h"
#include "targets/cuda/cuda_target.h"

namespace sextant {

// Device memory that knows when something was written behind its end.
class GuardedBytes {
 public:
  explicit GuardedBytes(int64_t bytes);
  ~GuardedBytes();
  GuardedBytes(GuardedBytes&& other) noexcept;
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;

  void* data() const { return data_; }
  bool end_is_whole() const;

 private:
  void* data_ = nullptr;
  int64_t bytes_;
};

// Numbers to and from a tensor in device memory. Reals are rounded to the tensor's type.
void write_to_device(const Tensor& tensor, const Numbers& numbers);
Numbers read_from_device(const Tensor& tensor);

// The type of an example's operand when the op computes in `real`; an operand that stays f32 in a run does so here.
DType input_dtype(const OpDef& def, size_t input, DType declared, DType real);

// The numbers as the device will see them.
std::vector<Numbers> rounded_inputs(const KernelRun& run);

// The scratch that the target plans for an op's kernel.
Bytes planned_scratch(const OpDef& def, const Attrs& attrs, std::span<const Tensor> in, std::span<const Tensor> out,
                      Determinism determinism);

// run.real is f32, bf16 or f16; run.threads says nothing.
std::vector<Numbers> run_cuda_kernel(const KernelRun& run, CudaDevice& device);

// A suite on the first GPU; skipped where there is none.
class OnDevice : public testing::Test {
 protected:
  static void SetUpTestSuite();
  static void TearDownTestSuite() {
    device_.reset();
    fast_device_.reset();
  }
  void SetUp() override;
  static CudaDevice& device() { return *device_; }  // repeatable
  static CudaDevice& fast_device();

 private:
  static inline std::unique_ptr<CudaDevice> device_, fast_device_;
};

}  // namespace sextant
