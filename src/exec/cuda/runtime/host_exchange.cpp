#include "exec/cuda/runtime/host_exchange.h"

#include <algorithm>
#include <cstring>

#include "exec/cuda/runtime/check.h"

namespace sextant {

namespace {

cudaEvent_t make_event() {
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event");
  return event;
}

}  // namespace

HostExchange::HostExchange(cudaStream_t stream, int numbers_under_way)
    : stream_(stream), gatherer_(std::make_unique<PieceGatherer>(stream)) {
  check_cuda(cudaMallocHost(reinterpret_cast<void**>(&pinned_), kPieces * kPieceBytes), "pinned memory");
  check_cuda(
      cudaMallocHost(reinterpret_cast<void**>(&numbers_), static_cast<size_t>(numbers_under_way) * sizeof(float)),
      "pinned memory");
  for (size_t i = 0; i < kPieces; ++i) pieces_.push_back({make_event()});
  for (int i = 0; i < numbers_under_way; ++i) arrived_.push_back(make_event());
}

HostExchange::~HostExchange() {
  cudaStreamSynchronize(stream_);
  for (const Piece& piece : pieces_) cudaEventDestroy(piece.sent);
  for (cudaEvent_t event : arrived_) cudaEventDestroy(event);
  cudaFreeHost(pinned_);
  cudaFreeHost(numbers_);
}

void HostExchange::send(void* device, std::span<const std::byte> bytes) {
  auto* to = static_cast<std::byte*>(device);
  while (!bytes.empty()) {
    size_t part = std::min(bytes.size(), kPieceBytes);
    Piece& piece = pieces_[next_];
    if (piece.used) check_cuda(cudaEventSynchronize(piece.sent), "waiting for bytes to leave");
    std::byte* from = pinned_ + next_ * kPieceBytes;
    std::memcpy(from, bytes.data(), part);
    check_cuda(cudaMemcpyAsync(to, from, part, cudaMemcpyDefault, stream_), "sending bytes to the device");
    check_cuda(cudaEventRecord(piece.sent, stream_), "sending bytes to the device");
    piece.used = true;
    next_ = (next_ + 1) % kPieces;
    to += part;
    bytes = bytes.subspan(part);
  }
}

void HostExchange::receive(std::span<std::byte> bytes, const void* device) const {
  check_cuda(cudaMemcpyAsync(bytes.data(), device, bytes.size(), cudaMemcpyDefault, stream_),
             "reading from the device");
  check_cuda(cudaStreamSynchronize(stream_), "reading from the device");
}

void HostExchange::receive_all(std::span<std::byte> bytes, std::span<const DevicePiece> pieces) const {
  gatherer_->gather(bytes, pieces);
}

int64_t HostExchange::fetch(const void* device_number) {
  size_t slot = static_cast<size_t>(fetches_) % arrived_.size();
  check_cuda(cudaMemcpyAsync(numbers_ + slot, device_number, sizeof(float), cudaMemcpyDefault, stream_), "a number");
  check_cuda(cudaEventRecord(arrived_[slot], stream_), "a number");
  return fetches_++;
}

float HostExchange::collect(int64_t ticket) {
  size_t slot = static_cast<size_t>(ticket) % arrived_.size();
  check_cuda(cudaEventSynchronize(arrived_[slot]), "waiting for a number");
  return numbers_[slot];
}

}  // namespace sextant
