#include "ckpt/quantized.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/fp8.h"

namespace sextant {

namespace {

constexpr std::array kE2m1{0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
constexpr int64_t kBytesPerGroup = kMxfp4Group / 2;

int64_t blocks_along(int64_t length) {
  return (length + kFp8BlockSize - 1) / kFp8BlockSize;
}

void expect_form(const TensorView& view, FileDType dtype, const GlobalShape& shape) {
  if (view.dtype == dtype && view.shape == shape) return;
  throw UserError({.place = view.place,
                   .got = fmt::format("{} {}", name_of(view.dtype), view.shape.text()),
                   .expected = fmt::format("{} {}, by the sizes in config.json", name_of(dtype), shape.text()),
                   .hint = "the weights and config.json of this directory do not belong together"});
}

}  // namespace

float float_from_e2m1(uint8_t code) {
  float magnitude = kE2m1[code & 7];
  return (code & 8) != 0 ? -magnitude : magnitude;
}

float float_from_e8m0(uint8_t code) {
  return code == 255 ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, code - 127);
}

std::optional<Mxfp4Weights> Mxfp4Weights::find(const WeightsReader& source, const std::string& name,
                                               const MatrixShape& shape) {
  std::string blocks = name + "_blocks";
  if (!source.contains(blocks)) return std::nullopt;
  Mxfp4Weights found;
  found.shape_ = shape;
  found.blocks_ = source.tensor(blocks);
  found.scales_ = source.tensor(name + "_scales");
  if (shape.columns % kMxfp4Group != 0)
    throw UserError({.place = found.blocks_.place,
                     .got = fmt::format("rows of {} numbers, by the sizes in config.json", shape.columns),
                     .expected = fmt::format("a multiple of {}, because so many share a scale", kMxfp4Group)});
  int64_t groups = shape.columns / kMxfp4Group;
  expect_form(found.blocks_, FileDType::u8, {shape.slices, shape.rows, groups, kBytesPerGroup});
  expect_form(found.scales_, FileDType::u8, {shape.slices, shape.rows, groups});
  return found;
}

void Mxfp4Weights::load(int64_t slice, RowRange rows, std::span<float> destination) const {
  int64_t groups = shape_.columns / kMxfp4Group;
  BUG_IF(std::ssize(destination) != rows.count() * shape_.columns, "{}: wrong destination", blocks_.place);
  auto out = destination.begin();
  int64_t first = (slice * shape_.rows + rows.begin) * groups, end = first + rows.count() * groups;
  for (int64_t group = first; group < end; ++group) {
    float scale = float_from_e8m0(std::to_integer<uint8_t>(scales_.bytes[static_cast<size_t>(group)]));
    for (std::byte pair : blocks_.bytes.subspan(static_cast<size_t>(group * kBytesPerGroup), kBytesPerGroup)) {
      auto codes = std::to_integer<uint8_t>(pair);
      *out++ = float_from_e2m1(codes) * scale;
      *out++ = float_from_e2m1(static_cast<uint8_t>(codes >> 4)) * scale;
    }
  }
}

std::optional<Fp8Weights> Fp8Weights::find(const WeightsReader& source, const std::string& name,
                                           const MatrixShape& shape) {
  std::string scales = name + "_scale_inv";
  if (!source.contains(name) || !source.contains(scales)) return std::nullopt;
  Fp8Weights found;
  found.weights_ = source.tensor(name);
  if (found.weights_.dtype != FileDType::f8_e4m3) return std::nullopt;
  found.shape_ = shape;
  found.blocks_ = {shape.slices, blocks_along(shape.rows), blocks_along(shape.columns)};
  expect_form(found.weights_, FileDType::f8_e4m3, shape.in_file());
  TensorView factors = source.tensor(scales);
  expect_form(factors, factors.dtype, found.blocks_.in_file());
  found.scales_.resize(static_cast<size_t>(factors.shape.count()));
  load_rows(factors, {0, row_count(factors.shape)}, Transpose::no, found.scales_);
  return found;
}

void Fp8Weights::load(int64_t slice, RowRange rows, std::span<float> destination) const {
  BUG_IF(std::ssize(destination) != rows.count() * shape_.columns, "{}: wrong destination", weights_.place);
  auto out = destination.begin();
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const float* scales = scales_.data() + (slice * blocks_.rows + row / kFp8BlockSize) * blocks_.columns;
    auto codes = weights_.bytes.subspan(static_cast<size_t>((slice * shape_.rows + row) * shape_.columns),
                                        static_cast<size_t>(shape_.columns));
    for (int64_t column = 0; column < shape_.columns; ++column)
      *out++ = fp8_value(kE4m3, std::to_integer<uint8_t>(codes[static_cast<size_t>(column)])) *
               scales[column / kFp8BlockSize];
  }
}

}  // namespace sextant
