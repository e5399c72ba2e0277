// PieceGatherer: many small pieces of device memory brought to the host at once. A copy for each would take some
// microseconds, a kernel that writes all of them into page-locked memory takes as long as one.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace sextant {

struct DevicePiece {
  const void* from;
  int64_t bytes;  // a multiple of 4
};

class PieceGatherer {
 public:
  explicit PieceGatherer(cudaStream_t stream) : stream_(stream) {}
  ~PieceGatherer();
  PieceGatherer(const PieceGatherer&) = delete;
  PieceGatherer& operator=(const PieceGatherer&) = delete;

  // One behind the other, as they are when all that stands on the stream is done; waits for that.
  void gather(std::span<std::byte> to, std::span<const DevicePiece> pieces);

 private:
  void make_room(size_t bytes);

  cudaStream_t stream_;
  std::byte* pinned_ = nullptr;  // what comes, and behind it the list of pieces
  size_t room_ = 0;
};

}  // namespace sextant
