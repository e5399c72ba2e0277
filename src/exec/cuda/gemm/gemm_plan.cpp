#include "exec/cuda/gemm/gemm_plan.h"

#include "base/error.h"
#include "targets/cuda/gemm_sizes.h"

namespace sextant {

namespace {

// The library counts by columns. A row-major C = A·B is Cᵀ = Bᵀ·Aᵀ there: B is its first operand, A its second.
struct Stored {
  int64_t rows, columns, stride;  // as row-major memory has it
};

Stored stored(int64_t rows, int64_t columns, MatrixOrder order, int64_t stride) {
  if (order == MatrixOrder::transposed) std::swap(rows, columns);
  return {rows, columns, stride == 0 ? columns : stride};
}

cudaDataType_t cuda_type(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::f16:
      return CUDA_R_16F;
    case DType::e4m3:
      return CUDA_R_8F_E4M3;
    case DType::e5m2:
      return CUDA_R_8F_E5M2;
    default:
      return CUDA_R_32F;
  }
}

constexpr int32_t kOfTiles = CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F,
                  kOfBlocks = CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;

cublasLtMatrixLayout_t layout_of(const Stored& s, DType dtype) {
  cublasLtMatrixLayout_t layout = nullptr;
  cublaslt().check(cublaslt().cublasLtMatrixLayoutCreate(&layout, cuda_type(dtype), static_cast<uint64_t>(s.columns),
                                                         static_cast<uint64_t>(s.rows), s.stride),
                   "describing a matrix");
  return layout;
}

cublasLtEpilogue_t epilogue_of(GemmEpilogue epilogue) {
  switch (epilogue) {
    case GemmEpilogue::none:
      return CUBLASLT_EPILOGUE_DEFAULT;
    case GemmEpilogue::bias:
      return CUBLASLT_EPILOGUE_BIAS;
    case GemmEpilogue::gelu:
      return CUBLASLT_EPILOGUE_GELU_AUX;
    case GemmEpilogue::gelu_bias:
      return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    case GemmEpilogue::gelu_gradient:
      return CUBLASLT_EPILOGUE_DGELU;
    case GemmEpilogue::row_sums:
      return CUBLASLT_EPILOGUE_BGRADB;  // our A is its second operand
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

template <class T>
void set(cublasLtMatmulDesc_t gemm, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  cublaslt().check(cublaslt().cublasLtMatmulDescSetAttribute(gemm, attribute, &value, sizeof value),
                   "describing a GEMM");
}

bool has_aux(GemmEpilogue e) {
  return e == GemmEpilogue::gelu || e == GemmEpilogue::gelu_bias || e == GemmEpilogue::gelu_gradient;
}

}  // namespace

GemmPlan::GemmPlan(const GemmShape& shape) : shape_(shape) {
  const CublasLt& lt = cublaslt();
  lt.check(lt.cublasLtMatmulDescCreate(&gemm_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "describing a GEMM");
  auto turned = [](MatrixOrder order) { return order == MatrixOrder::transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  set(gemm_, CUBLASLT_MATMUL_DESC_TRANSA, turned(shape.b_order));
  set(gemm_, CUBLASLT_MATMUL_DESC_TRANSB, turned(shape.a_order));
  first_ = layout_of(stored(shape.k, shape.n, shape.b_order, shape.b_stride), shape.b_in());
  second_ = layout_of(stored(shape.m, shape.k, shape.a_order, shape.a_stride), shape.in);
  result_ = layout_of(stored(shape.m, shape.n, MatrixOrder::as_is, shape.c_stride), shape.out);
  if (shape.scales != GemmScales::none) describe_scales();
  if (shape.epilogue == GemmEpilogue::none) return;
  set(gemm_, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(shape.epilogue));
  if (shape.epilogue == GemmEpilogue::row_sums) set(gemm_, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_32F);
  if (has_aux(shape.epilogue))
    set(gemm_, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, shape.c_stride ? shape.c_stride : shape.n);
}

void GemmPlan::describe_scales() {
  if (shape_.scales != GemmScales::tensors) {
    set(gemm_, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, shape_.scales == GemmScales::tiles ? kOfTiles : kOfBlocks);
    set(gemm_, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, kOfTiles);
  }
  // The library asks whether there are scales, and how they are aligned, when it is asked for algorithms; they are read
  // where run() says.
  const auto* somewhere = reinterpret_cast<const void*>(uintptr_t{256});
  set(gemm_, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, somewhere);
  set(gemm_, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, somewhere);
  set(gemm_, CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<int8_t>(shape_.sums == GemmSums::fast));
  if (shape_.epilogue == GemmEpilogue::bias) set(gemm_, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_16BF);
}

GemmPlan::~GemmPlan() {
  const CublasLt& lt = cublaslt();
  for (cublasLtMatrixLayout_t layout : {first_, second_, result_})
    if (layout) lt.cublasLtMatrixLayoutDestroy(layout);
  if (gemm_) lt.cublasLtMatmulDescDestroy(gemm_);
}

void GemmPlan::run(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& with, const GemmOperands& operands,
                   std::byte* workspace, cudaStream_t stream) const {
  if (operands.bias) set(gemm_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
  if (operands.aux) set(gemm_, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, operands.aux);
  if (shape_.scales != GemmScales::none) {
    set(gemm_, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, operands.b_scales);
    set(gemm_, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, operands.a_scales);
  }
  float one = 1, keep = operands.sum == SumState::running ? 1 : 0;
  const CublasLt& lt = cublaslt();
  lt.check(lt.cublasLtMatmul(handle, gemm_, &one, operands.b, first_, operands.a, second_, &keep, operands.c, result_,
                             operands.c, result_, &with, workspace, static_cast<size_t>(cuda::kGemmWorkspace), stream),
           shape_.text());
}

std::vector<cublasLtMatmulHeuristicResult_t> GemmPlan::candidates(cublasLtHandle_t handle) const {
  constexpr int kMost = 32;
  const CublasLt& lt = cublaslt();
  cublasLtMatmulPreference_t preference = nullptr;
  lt.check(lt.cublasLtMatmulPreferenceCreate(&preference), "asking for algorithms");
  uint64_t workspace = static_cast<uint64_t>(cuda::kGemmWorkspace);
  lt.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                          sizeof workspace);
  std::vector<cublasLtMatmulHeuristicResult_t> found(kMost);
  int count = 0;
  cublasStatus_t status = lt.cublasLtMatmulAlgoGetHeuristic(handle, gemm_, first_, second_, result_, result_,
                                                            preference, kMost, found.data(), &count);
  lt.cublasLtMatmulPreferenceDestroy(preference);
  found.resize(status == CUBLAS_STATUS_SUCCESS ? static_cast<size_t>(count) : 0);
  return found;
}

bool GemmPlan::accepts(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm) const {
  cublasLtMatmulHeuristicResult_t result{};
  cublasStatus_t status =
      cublaslt().cublasLtMatmulAlgoCheck(handle, gemm_, first_, second_, result_, result_, &algorithm, &result);
  return status == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= static_cast<size_t>(cuda::kGemmWorkspace);
}

}  // namespace sextant
