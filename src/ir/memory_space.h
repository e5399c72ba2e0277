// MemorySpace: whose memory a value's bytes are in. Each has an arena of its own. On a CPU both are memory of the same
// host, but two arenas all the same, so that a Program means the same everywhere.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace sextant {

enum class MemorySpace : uint8_t {
  device,  // what ops compute on
  host,    // page-locked memory of the host; an op all of whose operands are here runs on host cores
};

inline constexpr std::array kSpaces{MemorySpace::device, MemorySpace::host};

constexpr std::string_view name_of(MemorySpace space) {
  return space == MemorySpace::host ? "host" : "device";
}

}  // namespace sextant
