// The few parts of the protobuf encoding that event files of TensorBoard are made of.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace sextant::protobuf {

template <typename T>
std::string little_endian(T value) {
  static_assert(std::endian::native == std::endian::little);
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

inline std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

enum class Wire : uint8_t { varint = 0, eight_bytes = 1, bytes = 2, four_bytes = 5 };

inline std::string key(unsigned number, Wire wire) {
  return varint(number << 3 | static_cast<unsigned>(wire));
}

inline std::string field(unsigned number, std::string_view bytes) {
  return key(number, Wire::bytes) + varint(bytes.size()) + std::string(bytes);
}
inline std::string field(unsigned number, uint64_t value) {
  return key(number, Wire::varint) + varint(value);
}
inline std::string field(unsigned number, double value) {
  return key(number, Wire::eight_bytes) + little_endian(value);
}
inline std::string field(unsigned number, float value) {
  return key(number, Wire::four_bytes) + little_endian(value);
}
inline std::string field(unsigned number, std::span<const double> packed) {
  return field(number, std::string_view(reinterpret_cast<const char*>(packed.data()), packed.size_bytes()));
}

}  // namespace sextant::protobuf
