#include "exec/cuda/runtime/check.h"
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

namespace {

// `columns` elements of each row of `from`, from column `from_at` on, to column `to_at` of `to`.
void move_columns(const CudaCall& call, const Tensor& from, int64_t from_at, const Tensor& to, int64_t to_at,
                  int64_t columns) {
  auto size = static_cast<size_t>(size_of(from.dtype));
  auto bytes = [size](int64_t elements) { return static_cast<size_t>(elements) * size; };
  if (from.shape.rows() == 0 || columns == 0) return;
  check_cuda(cudaMemcpy2DAsync(to.as<std::byte>() + bytes(to_at), bytes(to.shape.last()),
                               from.as<const std::byte>() + bytes(from_at), bytes(from.shape.last()), bytes(columns),
                               static_cast<size_t>(from.shape.rows()), cudaMemcpyDeviceToDevice, call.stream),
             "copying columns");
}

void run_split_columns(const CudaCall& call) {
  int64_t first = call.out[0].shape.last();
  move_columns(call, call.in[0], 0, call.out[0], 0, first);
  move_columns(call, call.in[0], first, call.out[1], 0, call.out[1].shape.last());
}

void run_join_columns(const CudaCall& call) {
  int64_t first = call.in[0].shape.last();
  auto bytes = static_cast<size_t>(call.out[0].count() * size_of(call.out[0].dtype));
  if (call.in.size() < 2) check_cuda(cudaMemsetAsync(call.out[0].data, 0, bytes, call.stream), "clearing columns");
  move_columns(call, call.in[0], 0, call.out[0], 0, first);
  if (call.in.size() > 1) move_columns(call, call.in[1], 0, call.out[0], first, call.in[1].shape.last());
}

}  // namespace

const CudaKernel split_columns{.launch = run_split_columns};
const CudaKernel join_columns{.launch = run_join_columns};

}  // namespace sextant::cuda
