// The range of a floating-point format: what rounds to zero in it, and what does not fit.
#pragma once

#include <optional>

#include "base/dtype.h"

namespace sextant {

struct FloatRange {
  double zero_below = 0;  // magnitudes up to this round to zero: half of the smallest subnormal
  double largest = 0;     // finite
};

// Nothing for integers.
constexpr std::optional<FloatRange> float_range(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return FloatRange{0, 0x1.fffffffffffffp1023};  // half of the smallest is no f64
    case DType::f32:
      return FloatRange{0x1p-150, 0x1.fffffep127};
    case DType::bf16:
      return FloatRange{0x1p-134, 0x1.fep127};
    case DType::f16:
      return FloatRange{0x1p-25, 65504};
    case DType::e4m3:
      return FloatRange{0x1p-10, 448};
    case DType::e5m2:
      return FloatRange{0x1p-17, 57344};
    case DType::i64:
    case DType::i32:
    case DType::u32:
    case DType::u16:
    case DType::u8:
      break;
  }
  return std::nullopt;
}

}  // namespace sextant
