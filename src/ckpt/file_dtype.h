// Element types a safetensors file may hold: more than we compute with (base/dtype.h), but all can be read, checked
// and copied. The order of the enum is the order of the format's own list, by rising alignment: writers sort by it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/dtype.h"
#include "base/shape.h"

namespace sextant {

enum class FileDType : uint8_t {
  boolean,
  f4,
  f6_e2m3,
  f6_e3m2,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  f8_e8m0,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  c64,
  f64,
  i64,
  u64,
};

std::string_view name_of(FileDType dtype);  // "BF16", as files spell it
std::optional<FileDType> file_dtype_from_name(std::string_view name);
int64_t bits_of(FileDType dtype);  // some types are smaller than a byte

FileDType file_dtype_of(DType dtype);
std::optional<DType> dtype_of(FileDType dtype);  // empty where we have no such type

// Bytes of a tensor. Empty when a dim is negative, the count overflows or the last element ends inside a byte.
std::optional<int64_t> bytes_of(FileDType dtype, const GlobalShape& shape);

}  // namespace sextant
