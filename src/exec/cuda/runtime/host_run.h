// Ops of the host in a Program of a GPU: the CUDA driver calls each in its turn on a stream, on a thread of its own.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>

#include "exec/cpu/kernel.h"

namespace sextant {

// First exception of an op on the host (a failed disk), kept until the rank's own thread asks for it: nothing may be
// thrown into the driver.
class HostFailure {
 public:
  bool happened() const { return happened_.load(std::memory_order_acquire); }
  void keep(std::exception_ptr thrown);
  void rethrow() const;  // where something has been thrown; nothing else

 private:
  mutable std::mutex mutex_;
  std::exception_ptr first_;
  std::atomic<bool> happened_ = false;
};

// Its operands have one place for all microbatches.
struct HostRun {
  const CpuKernel& kernel;
  KernelCall call;
  std::unique_ptr<PreparedKernel> prepared;  // null for plain kernels
  HostFailure& failure;

  // `self` is a HostRun. Behind a failure nothing runs: its operands may not be there.
  static void CUDART_CB run(void* self);
};

}  // namespace sextant
