#include "exec/cuda/gemm/gemm.h"

#include "base/error.h"
#include "exec/cuda/gemm/gemm_check.h"
#include "exec/cuda/gemm/gemm_plan.h"
#include "exec/cuda/gemm/gemm_tuner.h"
#include "exec/cuda/runtime/check.h"

namespace sextant {

std::string GemmShape::text() const {
  auto letter = [](MatrixOrder order) { return order == MatrixOrder::transposed ? 't' : 'n'; };
  static constexpr const char* kEpilogues[] = {"", " bias", " gelu", " gelu_bias", " gelu_gradient", " row_sums"};
  std::string strides;
  if (a_stride || c_stride) strides = fmt::format(" strides {} {}", a_stride, c_stride);
  if (b_stride) strides += fmt::format(" b {}", b_stride);
  static constexpr const char* kScales[] = {"", " scaled", " tiles", " blocks"};
  std::string narrow;
  if (scales != GemmScales::none)
    narrow = fmt::format(" by {}{}{}", name_of(b_in()), kScales[static_cast<size_t>(scales)],
                         sums == GemmSums::fast ? " fast" : "");
  return fmt::format("{}x{}x{} {}{} {} {}{}{}{}", m, n, k, letter(a_order), letter(b_order), name_of(in), name_of(out),
                     kEpilogues[static_cast<size_t>(epilogue)], strides, narrow);
}

GemmLibrary::GemmLibrary(const CudaDevice& device) : device_(device) {
  cublasLtHandle_t handle = nullptr;
  cublaslt().check(cublaslt().cublasLtCreate(&handle), "opening cuBLASLt");
  handle_ = handle;
  if (device.tuning() == Tuning::timed) tuner_ = std::make_unique<GemmTuner>(device, handle);
}

GemmLibrary::~GemmLibrary() {
  tuner_.reset();
  plans_.clear();
  cublaslt().cublasLtDestroy(static_cast<cublasLtHandle_t>(handle_));
}

const GemmPlan* GemmLibrary::find_plan(const GemmShape& shape) {
  auto [at, fresh] = plans_.try_emplace(shape);
  if (!fresh) return at->second.get();
  auto plan = std::make_unique<GemmPlan>(shape);
  std::vector<cublasLtMatmulHeuristicResult_t> candidates = plan->candidates(static_cast<cublasLtHandle_t>(handle_));
  if (candidates.empty()) return nullptr;
  plan->choice = tuner_ ? tuner_->fastest(*plan, candidates) : TimedAlgorithm{candidates[0].algo, 0};
  at->second = std::move(plan);
  return at->second.get();
}

const GemmPlan& GemmLibrary::plan(const GemmShape& shape) {
  const GemmPlan* plan = find_plan(shape);
  if (!plan) throw RunError("cuda", fmt::format("the matrix library has no algorithm for the GEMM {}", shape.text()));
  return *plan;
}

bool GemmLibrary::pays(const GemmPlan& with_epilogue, const GemmPlan& without, int64_t bytes_more) const {
  if (!tuner_) return true;
  double more_ms = 1e3 * static_cast<double>(bytes_more) / device_.bytes_per_s();
  return with_epilogue.choice.ms <= without.choice.ms + more_ms;
}

void GemmLibrary::run(const GemmPlan& plan, const GemmOperands& operands, std::byte* workspace, cudaStream_t stream,
                      DeviceGemmCheck* check) const {
  if (check) begin_check(plan.shape(), operands, *check, stream);
  plan.run(static_cast<cublasLtHandle_t>(handle_), plan.choice.algorithm, operands, workspace, stream);
  if (check) end_check(plan.shape(), operands, *check, stream);
}

}  // namespace sextant
