// MemorySpace: where a value's bytes are. Each has an arena of its own. On a CPU device and host are memory of the same
// host, but two arenas all the same, so that a Program means the same everywhere.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sextant {

enum class MemorySpace : uint8_t {
  device,  // what ops compute on
  host,    // page-locked memory of the host; an op all of whose operands are here runs on host cores
  nvme,    // a file on a disk of the host; only copies to and from the host touch it
};

inline constexpr std::array kSpaces{MemorySpace::device, MemorySpace::host, MemorySpace::nvme};

// Transfers that go past the page cache (O_DIRECT) have file offset, size and address in multiples of it. In a Program
// that keeps something in a file, buffers of the file and of the host are laid out in such blocks.
inline constexpr int64_t kFileBlock = 4096;

constexpr std::string_view name_of(MemorySpace space) {
  constexpr std::array<std::string_view, kSpaces.size()> kNames{"device", "host", "nvme"};
  return kNames[static_cast<size_t>(space)];
}

}  // namespace sextant
