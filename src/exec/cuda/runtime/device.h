// CudaDevice: one GPU as the ops of one rank see it: its facts, its compute stream, and the libraries' handles, opened
// when first asked for.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <string>

#include "targets/kernel_needs.h"

namespace sextant {

enum class Tuning : uint8_t {
  timed,         // algorithms of GEMMs are chosen by timing them
  first_choice,  // the library's first: the same on every rank, so that copies of a value stay the same
};

class GemmLibrary;
class AttentionLibrary;

class CudaDevice {
 public:
  // RunError when the device cannot be used.
  CudaDevice(int index, Determinism determinism, Tuning tuning = Tuning::timed);
  ~CudaDevice();
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  int index() const { return index_; }
  const std::string& name() const { return name_; }  // "NVIDIA H200"
  int multiprocessors() const { return multiprocessors_; }
  int capability() const { return capability_; }       // 90 for 9.0
  double bytes_per_s() const { return bytes_per_s_; }  // of memory, by its clock and width
  Determinism determinism() const { return determinism_; }
  Tuning tuning() const { return tuning_; }
  cudaStream_t stream() const { return stream_; }
  void use() const;  // makes it the current device of this thread

  GemmLibrary& gemm();
  AttentionLibrary& attention();

 private:
  int index_;
  Determinism determinism_;
  Tuning tuning_;
  std::string name_;
  int multiprocessors_ = 0;
  int capability_ = 0;
  double bytes_per_s_ = 0;
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<GemmLibrary> gemm_;
  std::unique_ptr<AttentionLibrary> attention_;
};

}  // namespace sextant
