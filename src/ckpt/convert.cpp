#include "ckpt/convert.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <limits>

#include "base/bf16.h"
#include "base/error.h"
#include "base/f16.h"

namespace sextant {

namespace {

// Data in files may lie at any address, hence memcpy, which compiles to a plain load or store.
using Decode = void (*)(const std::byte* from, float* to, int64_t count);
using Encode = void (*)(const float* from, std::byte* to, int64_t count);

float float_from_f64(double value) {
  return static_cast<float>(value);
}

template <class Element, auto kConvert>
void decode_each(const std::byte* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    Element element;
    std::memcpy(&element, from + i * static_cast<int64_t>(sizeof element), sizeof element);
    to[i] = kConvert(element);
  }
}

void decode_f32(const std::byte* from, float* to, int64_t count) {
  if (count > 0) std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
}

void encode_f32(const float* from, std::byte* to, int64_t count) {
  if (count > 0) std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
}

template <uint16_t (*kConvert)(float)>
void encode_16(const float* from, std::byte* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    uint16_t bits = kConvert(from[i]);
    std::memcpy(to + i * 2, &bits, sizeof bits);
  }
}

constexpr std::string_view kQuantized =
    "quantized weights are not supported: take the original model, or dequantize it and save it in bf16 with the tool "
    "that quantized it";

Decode decoder_of(const TensorView& source) {
  switch (source.dtype) {
    case FileDType::f32:
      return decode_f32;
    case FileDType::bf16:
      return decode_each<uint16_t, bf16_value>;
    case FileDType::f16:
      return decode_each<uint16_t, f16_value>;
    case FileDType::f64:
      return decode_each<double, float_from_f64>;
    default:
      throw UserError({.place = source.place,
                       .got = fmt::format("{} cannot be loaded as numbers", name_of(source.dtype)),
                       .expected = "F32, BF16, F16 or F64",
                       .hint = bits_of(source.dtype) <= 8 ? std::string(kQuantized) : ""});
  }
}

Encode encoder_of(FileDType dtype) {
  if (dtype == FileDType::f32) return encode_f32;
  if (dtype == FileDType::bf16) return encode_16<bf16_bits>;
  if (dtype == FileDType::f16) return encode_16<f16_bits>;
  BUG("weights cannot be stored as {}", name_of(dtype));
}

// A transpose walks in small squares, each turned in the first-level cache: long strides would fetch a cache line for
// every element, and matrices are often as wide as a power of two, whose lines all fall into one set.
constexpr int64_t kTile = 64;
using Tile = float[kTile][kTile + 1];

struct TileRange {
  RowRange rows;
  RowRange columns;
};

template <class Body>
void for_each_tile(RowRange rows, RowRange columns, const Body& body) {
  for (int64_t i = rows.begin; i < rows.end; i += kTile)
    for (int64_t j = columns.begin; j < columns.end; j += kTile)
      body(TileRange{{i, std::min(i + kTile, rows.end)}, {j, std::min(j + kTile, columns.end)}});
}

void check_rows(RowRange rows, int64_t count) {
  BUG_IF(rows.begin < 0 || rows.begin > rows.end || rows.end > count, "rows {} to {} of {}", rows.begin, rows.end,
         count);
}

}  // namespace

float overflow_of(FileDType dtype) {
  // Half-way between the largest number and the next that there would be.
  if (dtype == FileDType::f16) return 65520.0f;
  if (dtype == FileDType::bf16) return std::bit_cast<float>(0x7F7F8000u);
  return std::numeric_limits<float>::infinity();
}

void load_rows(const TensorView& source, RowRange rows, Transpose transpose, std::span<float> destination) {
  Decode decode = decoder_of(source);
  int64_t height = row_count(source.shape), width = row_length(source.shape);
  int64_t size = bits_of(source.dtype) / 8;
  BUG_IF(std::ssize(source.bytes) != height * width * size, "{}: wrong number of bytes", source.place);
  bool turned = transpose == Transpose::yes;
  BUG_IF(turned && source.shape.rank() != 2, "{}: only matrices are transposed", source.place);
  check_rows(rows, turned ? width : height);
  BUG_IF(std::ssize(destination) != rows.count() * (turned ? height : width), "{}: wrong destination", source.place);
  const std::byte* from = source.bytes.data();
  float* to = destination.data();
  if (!turned) return decode(from + rows.begin * width * size, to, rows.count() * width);

  for_each_tile({0, height}, rows, [&](const TileRange& tile) {
    Tile square;
    for (int64_t i = 0; i < tile.rows.count(); ++i)
      decode(from + ((tile.rows.begin + i) * width + tile.columns.begin) * size, square[i], tile.columns.count());
    for (int64_t j = 0; j < tile.columns.count(); ++j) {
      float* row = to + (tile.columns.begin - rows.begin + j) * height + tile.rows.begin;
      for (int64_t i = 0; i < tile.rows.count(); ++i) row[i] = square[i][j];
    }
  });
}

void store_rows(const FloatMatrix& source, RowRange rows, Transpose transpose, FileDType dtype,
                std::span<std::byte> destination) {
  Encode encode = encoder_of(dtype);
  int64_t height = source.rows(), width = source.columns;
  int64_t size = bits_of(dtype) / 8;
  bool turned = transpose == Transpose::yes;
  check_rows(rows, turned ? width : height);
  BUG_IF(std::ssize(destination) != rows.count() * (turned ? height : width) * size, "wrong destination");
  const float* from = source.values.data();
  std::byte* to = destination.data();
  if (!turned) return encode(from + rows.begin * width, to, rows.count() * width);

  for_each_tile({0, height}, rows, [&](const TileRange& tile) {
    Tile square;  // already turned
    for (int64_t i = 0; i < tile.rows.count(); ++i) {
      const float* row = from + (tile.rows.begin + i) * width + tile.columns.begin;
      for (int64_t j = 0; j < tile.columns.count(); ++j) square[j][i] = row[j];
    }
    for (int64_t j = 0; j < tile.columns.count(); ++j)
      encode(square[j], to + ((tile.columns.begin - rows.begin + j) * height + tile.rows.begin) * size,
             tile.rows.count());
  });
}

}  // namespace sextant
