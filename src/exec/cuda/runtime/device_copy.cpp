#include "exec/cuda/runtime/device_copy.h"

#include <limits>

#include "exec/cuda/runtime/check.h"

namespace sextant::cuda {

namespace {

constexpr int64_t kLongestStride = std::numeric_limits<int32_t>::max();  // that the driver takes

// Whether a stretch is the next row of a piece.
bool continues(const DeviceCopy::Piece& piece, const cpu::Run& run) {
  int64_t from_stride = run.from - (piece.from + (piece.rows - 1) * piece.from_stride);
  int64_t to_stride = run.to - (piece.to + (piece.rows - 1) * piece.to_stride);
  auto possible = [&](int64_t stride) { return stride >= piece.bytes && stride <= kLongestStride; };
  if (run.bytes != piece.bytes || !possible(from_stride) || !possible(to_stride)) return false;
  return piece.rows == 1 || (from_stride == piece.from_stride && to_stride == piece.to_stride);
}

}  // namespace

DeviceCopy::DeviceCopy(const std::vector<cpu::Run>& runs) {
  for (const cpu::Run& run : runs) {
    if (run.bytes == 0) continue;
    if (pieces_.empty() || !continues(pieces_.back(), run)) {
      pieces_.push_back({run.from, run.to, run.bytes});
      continue;
    }
    Piece& piece = pieces_.back();
    piece.from_stride = run.from - (piece.from + (piece.rows - 1) * piece.from_stride);
    piece.to_stride = run.to - (piece.to + (piece.rows - 1) * piece.to_stride);
    ++piece.rows;
  }
}

void DeviceCopy::enqueue(const void* from, void* to, cudaStream_t stream) const {
  for (const Piece& piece : pieces_) {
    const std::byte* source = static_cast<const std::byte*>(from) + piece.from;
    std::byte* target = static_cast<std::byte*>(to) + piece.to;
    size_t bytes = static_cast<size_t>(piece.bytes);
    if (piece.rows == 1)
      check_cuda(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToDevice, stream), "a copy on the device");
    else
      check_cuda(cudaMemcpy2DAsync(target, static_cast<size_t>(piece.to_stride), source,
                                   static_cast<size_t>(piece.from_stride), bytes, static_cast<size_t>(piece.rows),
                                   cudaMemcpyDeviceToDevice, stream),
                 "a copy of rows on the device");
  }
}

}  // namespace sextant::cuda
