// HostExchange: what crosses between host and device while a Program runs, in order with the work on a stream and
// without waiting for it. Bytes for the device are copied into pinned memory at once and travel when their turn comes;
// numbers from the device are asked for now and collected later. Addresses
// of the host's arena (offload) are as good as the device's: they are reached in the same order.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "exec/cuda/runtime/gather.h"

namespace sextant {

class HostExchange {
 public:
  HostExchange(cudaStream_t stream, int numbers_under_way);
  ~HostExchange();
  HostExchange(const HostExchange&) = delete;
  HostExchange& operator=(const HostExchange&) = delete;

  void send(void* device, std::span<const std::byte> bytes);
  void receive(std::span<std::byte> bytes, const void* device) const;  // waits
  // Small pieces, of multiples of 4 bytes, one behind the other; waits once.
  void receive_all(std::span<std::byte> bytes, std::span<const DevicePiece> pieces) const;

  int64_t fetch(const void* device_number);  // a ticket
  float collect(int64_t ticket);             // waits

 private:
  struct Piece {
    cudaEvent_t sent;
    bool used = false;
  };

  static constexpr size_t kPieceBytes = size_t{1} << 20;
  static constexpr size_t kPieces = 64;

  cudaStream_t stream_;
  std::byte* pinned_ = nullptr;  // kPieces pieces, used in turn
  std::vector<Piece> pieces_;
  size_t next_ = 0;
  float* numbers_ = nullptr;  // pinned
  std::vector<cudaEvent_t> arrived_;
  int64_t fetches_ = 0;
  std::unique_ptr<PieceGatherer> gatherer_;
};

}  // namespace sextant
