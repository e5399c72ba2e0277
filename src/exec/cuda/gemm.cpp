#include "exec/cuda/gemm.h"

#include "base/error.h"
#include "exec/cuda/check.h"
#include "exec/cuda/gemm_plan.h"
#include "exec/cuda/gemm_tuner.h"

namespace sextant {

std::string GemmShape::text() const {
  auto letter = [](MatrixOrder order) { return order == MatrixOrder::transposed ? 't' : 'n'; };
  static constexpr const char* kEpilogues[] = {"", " bias", " gelu", " gelu_bias", " gelu_gradient"};
  std::string strides;
  if (a_stride || c_stride) strides = fmt::format(" strides {} {}", a_stride, c_stride);
  return fmt::format("{}x{}x{} {}{} {} {}{}{}", m, n, k, letter(a_order), letter(b_order), name_of(in), name_of(out),
                     kEpilogues[static_cast<size_t>(epilogue)], strides);
}

GemmLibrary::GemmLibrary(const CudaDevice& device) : device_(device) {
  cublasLtHandle_t handle = nullptr;
  cublaslt().check(cublaslt().cublasLtCreate(&handle), "opening cuBLASLt");
  handle_ = handle;
  if (device.determinism() == Determinism::fast) tuner_ = std::make_unique<GemmTuner>(device, handle);
}

GemmLibrary::~GemmLibrary() {
  tuner_.reset();
  plans_.clear();
  cublaslt().cublasLtDestroy(static_cast<cublasLtHandle_t>(handle_));
}

const GemmPlan& GemmLibrary::plan(const GemmShape& shape) {
  auto [at, fresh] = plans_.try_emplace(shape);
  if (!fresh) return *at->second;
  at->second = std::make_unique<GemmPlan>(shape);
  GemmPlan& plan = *at->second;
  plan.algorithm = tuner_ ? tuner_->fastest(plan) : plan.candidates(static_cast<cublasLtHandle_t>(handle_), 1)[0].algo;
  return plan;
}

void GemmLibrary::run(const GemmPlan& plan, const GemmOperands& operands, std::byte* workspace, cudaStream_t stream) const {
  plan.run(static_cast<cublasLtHandle_t>(handle_), plan.algorithm, operands, workspace, stream);
}

}  // namespace sextant
