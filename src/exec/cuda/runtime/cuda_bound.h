// A Program at its addresses in a GPU's memory: what a CUDA executor's bind makes. The first time a region runs it is
// captured as a CUDA graph, one for each set of addresses and sums it can have; from then on it is replayed.
#pragma once

#include <cstdint>
#include <memory>

#include "exec/cuda/runtime/device.h"
#include "exec/cuda/runtime/wires.h"
#include "exec/executor.h"

namespace sextant {

// Device memory, zero when fresh.
class CudaArena final : public Arena {
 public:
  CudaArena(const CudaDevice& device, int64_t bytes);  // RunError when there is too little memory
  ~CudaArena() override;
  CudaArena(const CudaArena&) = delete;
  CudaArena& operator=(const CudaArena&) = delete;

  int64_t bytes() const override { return bytes_; }
  std::byte* data() const { return data_; }

 private:
  const CudaDevice& device_;
  std::byte* data_ = nullptr;
  int64_t bytes_;
};

struct CudaRankParts {
  CudaDevice& device;
  int rank = 0;
  CudaWires* wires = nullptr;  // null when there are no other ranks
};

// All must outlive the result.
std::unique_ptr<Bound> bind_on_cuda(const Program& program, CudaArena& arena, const CudaRankParts& parts);

}  // namespace sextant
