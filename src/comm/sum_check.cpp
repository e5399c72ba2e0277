#include "comm/sum_check.h"

#include <cmath>
#include <limits>

#include "base/bf16.h"
#include "base/error.h"
#include "base/rng.h"

namespace sextant {

namespace {

constexpr double kHoeffdingSpread = 10;   // λ
constexpr double kOwnRoundoff = 0x1p-53;  // of the check's sums

// Of one rounding to the type, and the largest number it has; no rounding for integers.
struct RealType {
  double roundoff, largest;
};

std::optional<RealType> real_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return RealType{0x1p-24, std::numeric_limits<float>::max()};
    case DType::f64:
      return RealType{0x1p-53, std::numeric_limits<double>::max()};
    case DType::bf16:
      return RealType{0x1p-8, std::numeric_limits<float>::max()};
    default:
      return std::nullopt;
  }
}

// Calls visit(element, sign bit) for all.
template <class T, class Visit>
void for_signed(std::span<const std::byte> bytes, uint64_t signs, const Visit& visit) {
  const T* numbers = reinterpret_cast<const T*>(bytes.data());
  size_t count = bytes.size() / sizeof(T);
  Random random(signs, "sum_signs");
  for (size_t begin = 0; begin < count; begin += 64) {
    uint64_t bits = random.bits(begin / 64);
    for (size_t i = begin; i < std::min(count, begin + 64); ++i, bits >>= 1) visit(numbers[i], (bits & 1) != 0);
  }
}

}  // namespace

bool SumCheck::supports(DType dtype) {
  return real_type(dtype) || dtype == DType::i32 || dtype == DType::i64;
}

SumCheck::Projection SumCheck::projection_of(std::span<const std::byte> numbers) const {
  Projection found;
  auto real = [&](double x, bool plus) {
    found.sum += plus ? x : -x;
    found.norm += x * x;
  };
  auto integer = [&](int64_t x, bool plus) {
    found.whole += plus ? static_cast<uint64_t>(x) : uint64_t{0} - static_cast<uint64_t>(x);
  };
  switch (dtype_) {
    case DType::f32:
      for_signed<float>(numbers, signs_, [&](float x, bool plus) { real(static_cast<double>(x), plus); });
      break;
    case DType::f64:
      for_signed<double>(numbers, signs_, real);
      break;
    case DType::bf16:
      for_signed<uint16_t>(numbers, signs_,
                           [&](uint16_t x, bool plus) { real(static_cast<double>(bf16_value(x)), plus); });
      break;
    case DType::i32:
      for_signed<int32_t>(numbers, signs_, [&](int32_t x, bool plus) { integer(x, plus); });
      break;
    case DType::i64:
      for_signed<int64_t>(numbers, signs_, integer);
      break;
    default:
      BUG("no sums of {} are checked", name_of(dtype_));
  }
  found.norm = std::sqrt(found.norm);
  return found;
}

void SumCheck::add(std::span<const std::byte> term) {
  Projection own = projection_of(term);
  all_.sum += own.sum;
  all_.norm += own.norm;
  all_.whole += own.whole;
  count_ = term.size() / static_cast<size_t>(size_of(dtype_));
  ++terms_;
}

std::optional<SumCheck::Fault> SumCheck::fault_in(std::span<const std::byte> result) const {
  Projection got = projection_of(result);
  std::optional<RealType> real = real_type(dtype_);
  if (!real) {
    // i32 sums may wrap around; what is left of the checksum then is its lower half.
    uint64_t mask = dtype_ == DType::i32 ? 0xFFFFFFFFull : ~uint64_t{0};
    if (((got.whole ^ all_.whole) & mask) == 0) return std::nullopt;
    return Fault{static_cast<double>(got.whole & mask), static_cast<double>(all_.whole & mask), 0};
  }
  if (!(all_.norm < real->largest / 2)) return std::nullopt;
  double rounded = static_cast<double>(terms_) * real->roundoff, count = static_cast<double>(count_);
  double own = 4 * (count + terms_) * kOwnRoundoff * std::sqrt(count);
  double allowed = (kHoeffdingSpread * rounded / (1 - rounded) + own) * all_.norm +
                   terms_ * count * static_cast<double>(std::numeric_limits<float>::min());
  if (std::fabs(got.sum - all_.sum) <= allowed) return std::nullopt;
  return Fault{got.sum, all_.sum, allowed};
}

}  // namespace sextant
