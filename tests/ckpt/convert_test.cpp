// Conversions against NumPy's, which are stored in the fixture, and against plain arithmetic.
#include "ckpt/convert.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/bf16.h"
#include "base/f16.h"
#include "checkout.h"
#include "ckpt/safetensors.h"
#include "scratch.h"

namespace sextant {
namespace {

const std::filesystem::path kOfficial =
    std::string(checkout::kSources) + "/tests/fixtures/safetensors/official.safetensors";

std::vector<float> load_all(const TensorView& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.shape.count()));
  load_rows(tensor, {0, row_count(tensor.shape)}, Transpose::no, values);
  return values;
}

bool same(float a, float b) {
  return std::isnan(a) ? std::isnan(b) : std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

TEST(Convert, LoadsAsNumpyDoes) {
  SafetensorsFile file(kOfficial);
  for (std::string name : {"convert.f16", "convert.f64", "convert.f32.as_bf16"}) {
    std::vector<float> ours = load_all(file.tensor(name));
    TensorView truth = file.tensor(name + ".as_f32");
    ASSERT_EQ(truth.bytes.size(), ours.size() * 4);
    for (size_t i = 0; i < ours.size(); ++i) {
      float expected = 0;
      std::memcpy(&expected, truth.bytes.data() + i * 4, 4);
      EXPECT_TRUE(same(ours[i], expected)) << name << "[" << i << "] " << ours[i] << " is not " << expected;
    }
  }
}

TEST(Convert, RoundsToBf16AsNumpyDoes) {
  SafetensorsFile file(kOfficial);
  std::vector<float> values = load_all(file.tensor("convert.f32"));
  std::vector<std::byte> ours(values.size() * 2);
  store_rows({values, 1}, {0, static_cast<int64_t>(values.size())}, Transpose::no, FileDType::bf16, ours);
  EXPECT_TRUE(std::ranges::equal(ours, file.tensor("convert.f32.as_bf16").bytes));
}

TEST(Convert, RoundsAsTorchDoes) {
  SafetensorsFile file(std::string(checkout::kSources) + "/tests/fixtures/torch/conversions.safetensors");
  std::vector<float> values = load_all(file.tensor("f32"));
  auto count = static_cast<int64_t>(values.size());
  for (auto [name, dtype] : {std::pair{"bf16", FileDType::bf16}, {"f16", FileDType::f16}}) {
    std::vector<std::byte> ours(values.size() * 2);
    store_rows({values, 1}, {0, count}, Transpose::no, dtype, ours);
    EXPECT_TRUE(std::ranges::equal(ours, file.tensor(name).bytes)) << name;
    std::vector<float> rounded = load_all({name, dtype, {count}, ours});
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_EQ(std::isinf(rounded[i]), std::abs(values[i]) >= overflow_of(dtype)) << name << " " << values[i];
  }
}

TEST(Convert, EveryBf16SurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float value = bf16_value(static_cast<uint16_t>(bits));
    uint16_t back = bf16_bits(value);
    if (std::isnan(value))
      ASSERT_TRUE(std::isnan(bf16_value(back))) << bits;
    else
      ASSERT_EQ(back, bits);
  }
  EXPECT_TRUE(std::isnan(bf16_value(bf16_bits(std::bit_cast<float>(0x7F800001u)))));
  EXPECT_TRUE(std::isnan(bf16_value(bf16_bits(std::bit_cast<float>(0xFFFFFFFFu)))));
}

TEST(Convert, EveryF16HasItsValue) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    int exponent = static_cast<int>((bits >> 10) & 31);
    double mantissa = bits & 1023;
    double magnitude = exponent == 0    ? std::ldexp(mantissa, -24)
                       : exponent == 31 ? (mantissa == 0 ? INFINITY : NAN)
                                        : std::ldexp(1024 + mantissa, exponent - 25);
    ASSERT_TRUE(
        same(f16_value(static_cast<uint16_t>(bits)), static_cast<float>(bits & 0x8000 ? -magnitude : magnitude)))
        << bits;
  }
}

TEST(Convert, EveryF16SurvivesTheRoundTripAndTheMiddleRoundsToEven) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float value = f16_value(static_cast<uint16_t>(bits));
    uint16_t back = f16_bits(value);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(f16_value(back))) << bits;
      continue;
    }
    ASSERT_EQ(back, bits);
    if ((bits & 0x7FFF) >= 0x7BFF) continue;  // the largest, and infinity
    double next = static_cast<double>(f16_value(static_cast<uint16_t>(bits + 1)));
    float middle = static_cast<float>((static_cast<double>(value) + next) / 2);
    ASSERT_EQ(f16_bits(middle), bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(f16_bits(std::nextafter(middle, value)), bits);
    ASSERT_EQ(f16_bits(std::nextafter(middle, static_cast<float>(next))), bits + 1);
  }
  EXPECT_EQ(f16_bits(65519.99f), 0x7BFF);
  EXPECT_EQ(f16_bits(65520.0f), 0x7C00);
  EXPECT_EQ(f16_bits(-1e30f), 0xFC00);
}

// A matrix of 100 x 150 numbers, at an odd address as in files with unpadded headers.
struct Stored {
  static constexpr int64_t kRows = 100, kColumns = 150;
  std::vector<std::byte> bytes = std::vector<std::byte>(1 + kRows * kColumns * 2);
  TensorView view{"m", FileDType::bf16, {kRows, kColumns}, std::span(bytes).subspan(1)};
  Stored() {
    for (int64_t i = 0; i < kRows * kColumns; ++i) {
      uint16_t bits = bf16_bits(value(i / kColumns, i % kColumns));
      std::memcpy(bytes.data() + 1 + i * 2, &bits, 2);
    }
  }
  static float value(int64_t row, int64_t column) { return static_cast<float>(row * 2 - column % 100); }
};

TEST(Convert, LoadsRowRanges) {
  Stored m;
  std::vector<float> some(7 * Stored::kColumns);
  load_rows(m.view, {90, 97}, Transpose::no, some);
  for (int64_t i = 0; i < 7; ++i)
    for (int64_t j = 0; j < Stored::kColumns; ++j)
      ASSERT_EQ(some[static_cast<size_t>(i * Stored::kColumns + j)], Stored::value(90 + i, j));
  load_rows(m.view, {100, 100}, Transpose::no, {});
}

TEST(Convert, LoadsRowRangesOfTheTranspose) {
  Stored m;
  for (RowRange range : {RowRange{0, 150}, RowRange{3, 71}, RowRange{149, 150}, RowRange{5, 5}}) {
    std::vector<float> some(static_cast<size_t>(range.count() * Stored::kRows));
    load_rows(m.view, range, Transpose::yes, some);
    for (int64_t i = 0; i < range.count(); ++i)
      for (int64_t j = 0; j < Stored::kRows; ++j)
        ASSERT_EQ(some[static_cast<size_t>(i * Stored::kRows + j)], Stored::value(j, range.begin + i));
  }
}

TEST(Convert, StoreIsTheInverseOfLoad) {
  Stored m;
  for (Transpose transpose : {Transpose::no, Transpose::yes}) {
    std::vector<float> values(Stored::kRows * Stored::kColumns);
    bool turned = transpose == Transpose::yes;
    load_rows(m.view, {0, turned ? Stored::kColumns : Stored::kRows}, transpose, values);
    FloatMatrix matrix{values, turned ? Stored::kRows : Stored::kColumns};
    std::vector<std::byte> back(values.size() * 2);
    for (int64_t begin = 0; begin < Stored::kRows; begin += 33) {  // as a stream asks for them
      RowRange range{begin, std::min(begin + 33, Stored::kRows)};
      store_rows(matrix, range, transpose, FileDType::bf16,
                 std::span(back).subspan(static_cast<size_t>(begin * Stored::kColumns * 2),
                                         static_cast<size_t>(range.count() * Stored::kColumns * 2)));
    }
    EXPECT_TRUE(std::ranges::equal(back, m.view.bytes));
  }
}

TEST(Convert, RowsOfHigherRanksAndScalars) {
  std::vector<float> values{1, 2, 3, 4, 5, 6, 7, 8};
  auto bytes = std::as_bytes(std::span(values));
  std::vector<float> out(4);
  load_rows({"t", FileDType::f32, {2, 2, 2}, bytes}, {1, 2}, Transpose::no, out);
  EXPECT_EQ(out, (std::vector<float>{5, 6, 7, 8}));
  load_rows({"t", FileDType::f32, {8}, bytes}, {2, 6}, Transpose::no, out);
  EXPECT_EQ(out, (std::vector<float>{3, 4, 5, 6}));
  load_rows({"t", FileDType::f32, {}, bytes.first(4)}, {0, 1}, Transpose::no, std::span(out).first(1));
  EXPECT_EQ(out[0], 1);
  load_rows({"t", FileDType::f32, {0, 4}, {}}, {0, 0}, Transpose::no, {});
}

TEST(Convert, RefusesWhatDoesNotFit) {
  Stored m;
  std::vector<float> out(Stored::kColumns);
  TensorView ints = m.view;
  ints.dtype = FileDType::u16;
  EXPECT_IN("m: U16 cannot be loaded as numbers", message_of<UserError>([&] {
              load_rows(ints, {0, 1}, Transpose::no, out);
            }));
  EXPECT_THROW(load_rows(m.view, {0, 2}, Transpose::no, out), Bug);
  EXPECT_THROW(load_rows(m.view, {100, 101}, Transpose::no, out), Bug);
  EXPECT_THROW(load_rows(m.view, {2, 1}, Transpose::no, out), Bug);
  EXPECT_THROW(load_rows(m.view, {150, 151}, Transpose::yes, std::span(out).first(100)), Bug);
  EXPECT_THROW(store_rows({out, 1}, {0, 1}, Transpose::no, FileDType::i32, std::as_writable_bytes(std::span(out))),
               Bug);
}

}  // namespace
}  // namespace sextant
