// GemmPlan: one GEMM described to cuBLASLt, with the algorithm that will do it.
#pragma once

#include "exec/cuda/gemm/cublaslt.h"
#include "exec/cuda/gemm/gemm.h"

namespace sextant {

struct TimedAlgorithm {
  cublasLtMatmulAlgo_t algorithm{};
  float ms = 0;  // 0: not timed
};

class GemmPlan {
 public:
  explicit GemmPlan(const GemmShape& shape);
  ~GemmPlan();
  GemmPlan(const GemmPlan&) = delete;
  GemmPlan& operator=(const GemmPlan&) = delete;

  // Never throws UserError: what the library refuses is a RunError that names the shape.
  void run(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm, const GemmOperands& operands,
           std::byte* workspace, cudaStream_t stream) const;

  // The library's candidates, likely best first; none when it cannot do the GEMM.
  std::vector<cublasLtMatmulHeuristicResult_t> candidates(cublasLtHandle_t handle) const;

  // Whether an algorithm that comes from a file can do this GEMM, in the workspace there is.
  bool accepts(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm) const;

  const GemmShape& shape() const { return shape_; }
  TimedAlgorithm choice;

 private:
  void describe_scales();

  GemmShape shape_;
  cublasLtMatmulDesc_t gemm_ = nullptr;
  cublasLtMatrixLayout_t first_ = nullptr, second_ = nullptr, result_ = nullptr;
};

}  // namespace sextant
