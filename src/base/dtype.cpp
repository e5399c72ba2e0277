#include "base/dtype.h"

#include <array>

#include "base/error.h"
#include "base/fp8.h"

namespace sextant {

namespace {

struct DTypeFact {
  DType dtype;
  std::string_view name;
  int64_t size;
};

constexpr std::array kFacts{
    DTypeFact{DType::f64, "f64", 8}, DTypeFact{DType::f32, "f32", 4},   DTypeFact{DType::bf16, "bf16", 2},
    DTypeFact{DType::f16, "f16", 2}, DTypeFact{DType::e4m3, "e4m3", 1}, DTypeFact{DType::e5m2, "e5m2", 1},
    DTypeFact{DType::i64, "i64", 8}, DTypeFact{DType::i32, "i32", 4},   DTypeFact{DType::u32, "u32", 4},
    DTypeFact{DType::u16, "u16", 2}, DTypeFact{DType::u8, "u8", 1},
};

const DTypeFact& fact(DType dtype) {
  for (const DTypeFact& f : kFacts)
    if (f.dtype == dtype) return f;
  BUG("unknown dtype {}", static_cast<int>(dtype));
}

}  // namespace

int64_t size_of(DType dtype) {
  return fact(dtype).size;
}
std::string_view name_of(DType dtype) {
  return fact(dtype).name;
}

DType wide_of(DType dtype) {
  bool narrow = dtype == DType::bf16 || dtype == DType::f16 || is_fp8(dtype);
  return narrow ? DType::f32 : dtype;
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DTypeFact& f : kFacts)
    if (f.name == name) return f.dtype;
  return std::nullopt;
}

}  // namespace sextant
