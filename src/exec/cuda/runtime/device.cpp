#include "exec/cuda/runtime/device.h"

#include "base/error.h"
#include "exec/cuda/attention/attention_library.h"
#include "exec/cuda/gemm/gemm.h"
#include "exec/cuda/runtime/check.h"

namespace sextant {

namespace {

constexpr int kLeastCapability = 80;  // bf16 GEMMs begin with Ampere

}  // namespace

CudaDevice::CudaDevice(int index, Determinism determinism, Tuning tuning)
    : index_(index),
      determinism_(determinism),
      tuning_(determinism == Determinism::repeatable ? Tuning::first_choice : tuning) {
  use();
  cudaDeviceProp facts{};
  check_cuda(cudaGetDeviceProperties(&facts, index), fmt::format("asking device {} what it is", index));
  name_ = facts.name;
  multiprocessors_ = facts.multiProcessorCount;
  capability_ = 10 * facts.major + facts.minor;
  int khz = 0, bits = 0;
  check_cuda(cudaDeviceGetAttribute(&khz, cudaDevAttrMemoryClockRate, index), "asking for the memory's clock");
  check_cuda(cudaDeviceGetAttribute(&bits, cudaDevAttrGlobalMemoryBusWidth, index), "asking for the memory's width");
  bytes_per_s_ = 2.0 * khz * 1e3 * bits / 8;  // two transfers a clock
  if (capability_ < kLeastCapability)
    throw RunError("cuda", fmt::format("{} has compute capability {}.{}", name_, facts.major, facts.minor),
                   "8.0 (A100) or newer is needed, or device=cpu");
  check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
}

CudaDevice::~CudaDevice() {
  cudaSetDevice(index_);
  gemm_.reset();
  attention_.reset();
  if (stream_) cudaStreamDestroy(stream_);
}

void CudaDevice::use() const {
  check_cuda(cudaSetDevice(index_), fmt::format("using device {}", index_));
}

GemmLibrary& CudaDevice::gemm() {
  if (!gemm_) gemm_ = std::make_unique<GemmLibrary>(*this);
  return *gemm_;
}

AttentionLibrary& CudaDevice::attention() {
  if (!attention_) attention_ = std::make_unique<AttentionLibrary>(*this);
  return *attention_;
}

}  // namespace sextant
