// Walks over bytes that came from outside and may end anywhere. Whatever lies beyond the end is a StreamError.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string_view>

#include "data/decompress.h"
#include "data/little_endian.h"

namespace sextant {

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  size_t at() const { return at_; }
  size_t left() const { return bytes_.size() - at_; }

  std::string_view take(uint64_t count) {
    if (count > left()) throw StreamError(fmt::format("{} bytes are needed where {} are left", count, left()));
    std::string_view taken = bytes_.substr(at_, static_cast<size_t>(count));
    at_ += static_cast<size_t>(count);
    return taken;
  }

  std::string_view rest() { return take(left()); }
  uint8_t byte() { return static_cast<uint8_t>(take(1)[0]); }

  template <class T>
  T little_endian() {
    return load_le<T>(reinterpret_cast<const std::byte*>(take(sizeof(T)).data()));
  }

  uint64_t varint() {  // seven bits a byte, the lowest first
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      uint8_t next = byte();
      value |= uint64_t{next & 0x7Fu} << shift;
      if (next < 0x80) return value;
    }
    throw StreamError("a number has more than ten bytes");
  }

  int64_t zigzag() {  // a varint whose lowest bit is the sign
    uint64_t value = varint();
    return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
  }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
};

}  // namespace sextant
