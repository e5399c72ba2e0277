#include <cstring>

#include "base/error.h"
#include "base/units.h"
#include "exec/cuda/runtime/check.h"
#include "exec/cuda/runtime/gather.h"

namespace sextant {

namespace {

constexpr int kGatherThreads = 256;

struct GatheredWords {
  const uint32_t* from;
  int64_t at, count;  // in words
};

__global__ void __launch_bounds__(kGatherThreads) gather_words(const GatheredWords* pieces, int count, uint32_t* to) {
  const int piece = static_cast<int>(blockIdx.x) * kGatherThreads + static_cast<int>(threadIdx.x);
  if (piece >= count) return;
  const GatheredWords words = pieces[piece];
  for (int64_t i = 0; i < words.count; ++i) to[words.at + i] = words.from[i];
}

}  // namespace

PieceGatherer::~PieceGatherer() {
  cudaFreeHost(pinned_);
}

void PieceGatherer::make_room(size_t bytes) {
  if (bytes <= room_) return;
  check_cuda(cudaFreeHost(pinned_), "pinned memory");
  pinned_ = nullptr;
  room_ = 0;
  check_cuda(cudaMallocHost(reinterpret_cast<void**>(&pinned_), bytes), "pinned memory");
  room_ = bytes;
}

void PieceGatherer::gather(std::span<std::byte> to, std::span<const DevicePiece> pieces) {
  if (pieces.empty()) return;
  const auto list_at = static_cast<size_t>(round_up(static_cast<int64_t>(to.size()), alignof(GatheredWords)));
  make_room(list_at + pieces.size() * sizeof(GatheredWords));
  auto* list = reinterpret_cast<GatheredWords*>(pinned_ + list_at);
  int64_t at = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    BUG_IF(pieces[i].bytes % 4 != 0, "a piece of {} bytes", pieces[i].bytes);
    list[i] = {static_cast<const uint32_t*>(pieces[i].from), at, pieces[i].bytes / 4};
    at += pieces[i].bytes / 4;
  }
  BUG_IF(4 * at != static_cast<int64_t>(to.size()), "pieces of {} bytes for {}", 4 * at, to.size());
  const auto count = static_cast<int>(pieces.size());
  gather_words<<<static_cast<unsigned>(ceil_div(count, kGatherThreads)), kGatherThreads, 0, stream_>>>(
      list, count, reinterpret_cast<uint32_t*>(pinned_));
  check_cuda(cudaGetLastError(), "reading from the device");
  check_cuda(cudaStreamSynchronize(stream_), "reading from the device");
  std::memcpy(to.data(), pinned_, to.size());
}

}  // namespace sextant
