// GemmPlan: one product described to cuBLASLt, with the algorithm that will do it.
#pragma once

#include "exec/cuda/cublaslt.h"
#include "exec/cuda/gemm.h"

namespace sextant {

class GemmPlan {
 public:
  explicit GemmPlan(const GemmShape& shape);
  ~GemmPlan();
  GemmPlan(const GemmPlan&) = delete;
  GemmPlan& operator=(const GemmPlan&) = delete;

  // UserError-free: what the library refuses is a RunError that names the shape.
  void run(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm, const GemmOperands& operands,
           std::byte* workspace, cudaStream_t stream) const;

  // The library's candidates, likely best first.
  std::vector<cublasLtMatmulHeuristicResult_t> candidates(cublasLtHandle_t handle, int most) const;

  const GemmShape& shape() const { return shape_; }
  cublasLtMatmulAlgo_t algorithm{};

 private:
  GemmShape shape_;
  cublasLtMatmulDesc_t product_ = nullptr;
  cublasLtMatrixLayout_t first_ = nullptr, second_ = nullptr, result_ = nullptr;
};

}  // namespace sextant
