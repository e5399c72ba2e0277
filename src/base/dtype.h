// Element types of tensors, in memory and in files.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sextant {

enum class DType : uint8_t { f64, f32, bf16, f16, e4m3, e5m2, i64, i32, u32, u16, u8 };

int64_t size_of(DType dtype);
std::string_view name_of(DType dtype);  // "f32"
// Type of sums and statistics of such elements: f32 for floats of 16 and 8 bits, else `dtype` itself.
DType wide_of(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);  // the inverse of name_of

}  // namespace sextant
