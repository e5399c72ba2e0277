#include "exec/cuda/runtime/fault_mailbox.h"

#include "exec/cuda/runtime/check.h"

namespace sextant {

FaultMailbox::FaultMailbox() {
  void* at = nullptr;
  check_cuda(cudaHostAlloc(&at, sizeof(DeviceGemmFault), cudaHostAllocPortable | cudaHostAllocMapped),
             "page-locked memory for checks");
  fault_ = new (at) DeviceGemmFault{};
}

FaultMailbox::~FaultMailbox() {
  cudaFreeHost(fault_);
}

}  // namespace sextant
