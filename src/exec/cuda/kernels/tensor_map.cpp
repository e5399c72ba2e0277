#include "exec/cuda/kernels/tensor_map.h"

#include <cudaTypedefs.h>
#include <cuda_runtime.h>

#include "base/error.h"
#include "exec/cuda/runtime/check.h"

namespace sextant::cuda {

namespace {

PFN_cuTensorMapEncodeTiled_v12000 tensor_map_encoder() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  check_cuda(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found),
             "looking for the driver's tensor maps");
  BUG_IF(found != cudaDriverEntryPointSuccess, "a Hopper driver without tensor maps");
  return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
}

}  // namespace

CUtensorMap tensor_map(const __nv_bfloat16* data, int64_t width, int64_t rows, int64_t count, int box_rows) {
  static const PFN_cuTensorMapEncodeTiled_v12000 encode = tensor_map_encoder();
  const cuuint64_t sizes[3] = {static_cast<cuuint64_t>(width), static_cast<cuuint64_t>(rows),
                               static_cast<cuuint64_t>(count)};
  const cuuint64_t strides[2] = {sizes[0] * sizeof(*data), sizes[0] * sizes[1] * sizeof(*data)};
  const cuuint32_t box[3] = {64, static_cast<cuuint32_t>(box_rows), 1}, steps[3] = {1, 1, 1};
  CUtensorMap map;
  CUresult result = encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, const_cast<__nv_bfloat16*>(data), sizes, strides,
                           box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                           CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  BUG_IF(result != CUDA_SUCCESS, "a tensor map that the driver does not take");
  return map;
}

}  // namespace sextant::cuda
