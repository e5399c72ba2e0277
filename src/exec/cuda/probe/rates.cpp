#include "exec/cuda/probe/rates.h"

#include <functional>
#include <limits>

#include "exec/cuda/gemm/gemm.h"
#include "exec/cuda/runtime/check.h"
#include "exec/cuda/runtime/fill.h"
#include "targets/cuda/gemm_sizes.h"

namespace sextant {

namespace {

constexpr int64_t kSide = 8192;
constexpr int64_t kCopyBytes = int64_t{1} << 30;
constexpr int kRepeats = 10;

class DeviceBytes {
 public:
  explicit DeviceBytes(int64_t bytes) {
    check_cuda(cudaMalloc(&data, static_cast<size_t>(bytes)), "memory to measure rates");
  }
  ~DeviceBytes() { cudaFree(data); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  void* data = nullptr;
};

double best_seconds(cudaStream_t stream, const std::function<void()>& work) {
  cudaEvent_t begin = nullptr, end = nullptr;
  check_cuda(cudaEventCreate(&begin), "an event");
  check_cuda(cudaEventCreate(&end), "an event");
  float best = std::numeric_limits<float>::infinity();
  for (int i = 0; i < kRepeats; ++i) {
    float ms = 0;
    check_cuda(cudaEventRecord(begin, stream), "measuring");
    work();
    check_cuda(cudaEventRecord(end, stream), "measuring");
    check_cuda(cudaEventSynchronize(end), "measuring");
    check_cuda(cudaEventElapsedTime(&ms, begin, end), "measuring");
    best = std::min(best, ms);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return static_cast<double>(best) / 1e3;
}

}  // namespace

DeviceRates measured_rates(CudaDevice& device) {
  cudaStream_t stream = device.stream();
  DeviceBytes a(kCopyBytes), b(kCopyBytes), scratch(cuda::kGemmWorkspace);
  fill_random(a.data, 2 * kSide * kSide, DType::bf16, stream);
  DeviceRates rates;
  const GemmPlan& plan = device.gemm().plan(
      {.m = kSide, .n = kSide, .k = kSide, .b_order = MatrixOrder::transposed, .in = DType::bf16, .out = DType::bf16});
  auto* second = static_cast<std::byte*>(a.data) + kSide * kSide * 2;
  rates.flops_per_s =
      2.0 * kSide * kSide * kSide / best_seconds(stream, [&] {
        device.gemm().run(plan, {a.data, second, b.data}, static_cast<std::byte*>(scratch.data), stream);
      });
  rates.bytes_per_s =
      2.0 * kCopyBytes / best_seconds(stream, [&] {
        check_cuda(cudaMemcpyAsync(b.data, a.data, static_cast<size_t>(kCopyBytes), cudaMemcpyDeviceToDevice, stream),
                   "measuring");
      });
  return rates;
}

}  // namespace sextant
