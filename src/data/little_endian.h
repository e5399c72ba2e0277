// Little-endian values at any address, aligned or not.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>

namespace sextant {

static_assert(std::endian::native == std::endian::little, "data files are read and written in the machine's own order");

template <class T>
T load_le(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
void store_le(T value, std::byte* to) {
  std::memcpy(to, &value, sizeof value);
}

}  // namespace sextant
