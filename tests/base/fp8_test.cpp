// fp8 against a scalar reference that knows nothing but the values of the codes, and against PyTorch's float8 types.
#include "base/fp8.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <vector>

#include "base/files.h"
#include "base/rng.h"
#include "checkout.h"

namespace sextant {
namespace {

struct NamedFormat {
  const char* name;
  const Fp8Format& format;
  int exponent_bits;
  bool has_infinity;
};
const NamedFormat kFormats[] = {{"e4m3", kE4m3, 4, false}, {"e5m2", kE5m2, 5, true}};

// By the definition of the format: sign, exponent, mantissa.
double value_by_definition(const NamedFormat& f, int code) {
  int mantissa_bits = 7 - f.exponent_bits, bias = (1 << (f.exponent_bits - 1)) - 1;
  int exponent = (code & 0x7F) >> mantissa_bits, mantissa = code & ((1 << mantissa_bits) - 1);
  double part = std::ldexp(mantissa, -mantissa_bits);
  double magnitude = exponent == 0 ? std::ldexp(part, 1 - bias) : std::ldexp(1 + part, exponent - bias);
  bool top = exponent == (1 << f.exponent_bits) - 1;
  if (f.has_infinity && top) magnitude = mantissa == 0 ? INFINITY : NAN;
  if (!f.has_infinity && (code & 0x7F) == 0x7F) magnitude = NAN;
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

// The nearest of all finite codes; of two as near, the one with an even code.
uint8_t nearest_code(const NamedFormat& f, float x) {
  if (std::isnan(x)) return static_cast<uint8_t>(0x7F | (std::signbit(x) ? 0x80 : 0));
  int best = 0;
  double least = INFINITY;
  for (int code = 0; code < 128; ++code) {
    double value = value_by_definition(f, code);
    if (!std::isfinite(value)) continue;
    // So far away that an f64 has no room for the difference, the largest is nearest.
    bool far = std::abs(static_cast<double>(x)) > 1e12;
    double away = far ? -value : std::abs(value - std::abs(static_cast<double>(x)));
    if (away < least || (away == least && code % 2 == 0)) best = code, least = away;
  }
  return static_cast<uint8_t>(best | (std::signbit(x) ? 0x80 : 0));
}

std::vector<float> numbers_to_round(const NamedFormat& f) {
  std::vector<float> numbers{0.0F, -0.0F, NAN, -NAN, INFINITY, -INFINITY, 1e38F, -1e38F, 1e-38F, 1e-45F};
  for (int code = 0; code < 256; ++code) {
    double value = value_by_definition(f, code), next = value_by_definition(f, code + 1);
    if (!std::isfinite(value) || !std::isfinite(next)) continue;
    auto middle = static_cast<float>((value + next) / 2);
    for (float x : {static_cast<float>(value), middle, std::nextafter(middle, 1e9F), std::nextafter(middle, -1e9F)})
      numbers.push_back(x);
  }
  Random random(3, "fp8");
  for (size_t i = 0; i < 4000; ++i)
    numbers.push_back(static_cast<float>(std::ldexp(random.normal(i), static_cast<int>(i % 40) - 22)));
  return numbers;
}

TEST(Fp8, EveryCodeIsTheNumberOfItsDefinition) {
  for (const NamedFormat& f : kFormats)
    for (int code = 0; code < 256; ++code) {
      double expected = value_by_definition(f, code), got = fp8_value(f.format, static_cast<uint8_t>(code));
      EXPECT_TRUE(std::isnan(expected) ? std::isnan(got) : got == expected) << f.name << " " << code;
    }
  EXPECT_EQ(fp8_value(kE4m3, 0x7E), 448);
  EXPECT_EQ(fp8_value(kE5m2, 0x7B), 57344);
  EXPECT_EQ(fp8_value(kE4m3, 0x01), std::ldexp(1.0F, -9));
  EXPECT_EQ(fp8_value(kE5m2, 0x01), std::ldexp(1.0F, -16));
}

TEST(Fp8, RoundsToTheNearestEvenAndSaturates) {
  for (const NamedFormat& f : kFormats)
    for (float x : numbers_to_round(f)) ASSERT_EQ(fp8_bits(f.format, x), nearest_code(f, x)) << f.name << " of " << x;
}

TEST(Fp8, RoundsAsTorchDoes) {
  std::istringstream lines(read_file(std::filesystem::path(checkout::kSources) / "tests/fixtures/fp8/torch.csv"));
  std::string line;
  std::getline(lines, line);
  ASSERT_EQ(line, "f32,e4m3,e5m2");
  int rows = 0;
  while (std::getline(lines, line)) {
    uint32_t bits = 0;
    int codes[2] = {};
    std::from_chars(line.data(), line.data() + 8, bits, 16);
    std::from_chars(line.data() + 9, line.data() + 11, codes[0], 16);
    std::from_chars(line.data() + 12, line.data() + 14, codes[1], 16);
    auto x = std::bit_cast<float>(bits);
    for (int i : {0, 1}) {
      uint8_t got = fp8_bits(kFormats[i].format, x);
      if (std::isnan(x))
        EXPECT_TRUE(std::isnan(fp8_value(kFormats[i].format, got)));
      else
        EXPECT_EQ(got, codes[i]) << kFormats[i].name << " of " << x;
    }
    ++rows;
  }
  EXPECT_GT(rows, 1000);
}

TEST(Fp8, IsInTheTableOfTypes) {
  for (DType dtype : {DType::e4m3, DType::e5m2}) {
    EXPECT_EQ(size_of(dtype), 1);
    EXPECT_EQ(wide_of(dtype), DType::f32);
    EXPECT_EQ(dtype_from_name(name_of(dtype)), dtype);
    EXPECT_TRUE(is_fp8(dtype));
  }
  EXPECT_FALSE(is_fp8(DType::u8));
}

}  // namespace
}  // namespace sextant
