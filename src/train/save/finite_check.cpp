#include "train/save/finite_check.h"

#include <cstring>
#include <vector>

namespace sextant {

namespace {

// An exponent of all ones, whatever the rest: NaN or infinity. Integer arithmetic, so that the loop is one the compiler
// makes SIMD of.
template <class Bits>
bool has_full_exponent(std::span<const std::byte> bytes, Bits exponent) {
  Bits found = 0;
  for (size_t at = 0; at + sizeof(Bits) <= bytes.size(); at += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + at, sizeof bits);
    found |= static_cast<Bits>((bits & exponent) == exponent);
  }
  return found != 0;
}

bool has_non_finite(DType dtype, std::span<const std::byte> bytes) {
  switch (dtype) {
    case DType::f64:
      return has_full_exponent<uint64_t>(bytes, 0x7ff0'0000'0000'0000);
    case DType::f32:
      return has_full_exponent<uint32_t>(bytes, 0x7f80'0000);
    case DType::bf16:
      return has_full_exponent<uint16_t>(bytes, 0x7f80);
    case DType::f16:
      return has_full_exponent<uint16_t>(bytes, 0x7c00);
    case DType::e4m3:
      return has_full_exponent<uint8_t>(bytes, 0x7f);
    case DType::e5m2:
      return has_full_exponent<uint8_t>(bytes, 0x7c);
    case DType::i64:
    case DType::i32:
    case DType::u32:
    case DType::u16:
    case DType::u8:
      return false;
  }
  return false;
}

}  // namespace

std::string first_non_finite(const StateView& values) {
  constexpr int64_t kBlock = 16 << 20;  // bytes looked at together
  std::vector<std::byte> block;
  for (const Value& value : values.program().values) {
    if (value.kind != ValueKind::parameter && value.kind != ValueKind::state) continue;
    int64_t bytes = value.local_bytes().n;
    for (int64_t at = 0; at < bytes; at += kBlock) {
      block.resize(static_cast<size_t>(std::min(kBlock, bytes - at)));
      values.read(value, block, at);
      if (has_non_finite(value.dtype, block)) return value.path;
    }
  }
  return "";
}

}  // namespace sextant
