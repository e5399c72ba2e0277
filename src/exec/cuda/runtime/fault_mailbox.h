// FaultMailbox: page-locked memory of the host that checks on a GPU write to.
#pragma once

#include "exec/cuda/gemm/gemm_check.h"

namespace sextant {

class FaultMailbox {
 public:
  FaultMailbox();
  ~FaultMailbox();
  FaultMailbox(const FaultMailbox&) = delete;
  FaultMailbox& operator=(const FaultMailbox&) = delete;

  // Good on both sides; to be read when the stream has been waited for.
  DeviceGemmFault* fault() const { return fault_; }

 private:
  DeviceGemmFault* fault_ = nullptr;
};

}  // namespace sextant
