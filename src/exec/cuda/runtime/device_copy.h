// Copies of rectangular pieces between tensors in device memory. Enters: the stretches of bytes that exec/cpu/boxes.h
// finds. Leaves: as few two-dimensional copies as they fold into, put on a stream.
#pragma once

#include <cuda_runtime.h>
#include <cstdint>

#include <cstddef>
#include <vector>

#include "exec/cpu/kernels/boxes.h"

namespace sextant::cuda {

class DeviceCopy {
 public:
  DeviceCopy() = default;
  explicit DeviceCopy(const std::vector<cpu::Run>& runs);

  void enqueue(const void* from, void* to, cudaStream_t stream) const;

  // `rows` stretches of `bytes`, each beginning a stride behind the one before.
  struct Piece {
    int64_t from, to, bytes;
    int64_t rows = 1;
    int64_t from_stride = 0, to_stride = 0;
  };
  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  std::vector<Piece> pieces_;
};

}  // namespace sextant::cuda
