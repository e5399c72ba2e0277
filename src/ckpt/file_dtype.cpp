#include "ckpt/file_dtype.h"

#include <algorithm>
#include <array>

namespace sextant {

namespace {

struct Fact {
  std::string_view name;
  int64_t bits;
  std::optional<DType> dtype;
};

// In the order of the enum.
constexpr std::array kFacts{
    Fact{"BOOL", 8, {}},
    Fact{"F4", 4, {}},
    Fact{"F6_E2M3", 6, {}},
    Fact{"F6_E3M2", 6, {}},
    Fact{"U8", 8, DType::u8},
    Fact{"I8", 8, {}},
    Fact{"F8_E5M2", 8, DType::e5m2},
    Fact{"F8_E4M3", 8, DType::e4m3},
    Fact{"F8_E8M0", 8, {}},
    Fact{"F8_E4M3FNUZ", 8, {}},
    Fact{"F8_E5M2FNUZ", 8, {}},
    Fact{"I16", 16, {}},
    Fact{"U16", 16, DType::u16},
    Fact{"F16", 16, DType::f16},
    Fact{"BF16", 16, DType::bf16},
    Fact{"I32", 32, DType::i32},
    Fact{"U32", 32, DType::u32},
    Fact{"F32", 32, DType::f32},
    Fact{"C64", 64, {}},
    Fact{"F64", 64, DType::f64},
    Fact{"I64", 64, DType::i64},
    Fact{"U64", 64, {}},
};
static_assert(kFacts.size() == static_cast<size_t>(FileDType::u64) + 1);

const Fact& fact(FileDType dtype) {
  return kFacts.at(static_cast<size_t>(dtype));
}

template <class Matches>
std::optional<FileDType> find_fact(const Matches& matches) {
  auto found = std::find_if(kFacts.begin(), kFacts.end(), matches);
  if (found == kFacts.end()) return std::nullopt;
  return static_cast<FileDType>(found - kFacts.begin());
}

}  // namespace

std::string_view name_of(FileDType dtype) {
  return fact(dtype).name;
}
int64_t bits_of(FileDType dtype) {
  return fact(dtype).bits;
}
std::optional<DType> dtype_of(FileDType dtype) {
  return fact(dtype).dtype;
}

std::optional<FileDType> file_dtype_from_name(std::string_view name) {
  return find_fact([&](const Fact& f) { return f.name == name; });
}

FileDType file_dtype_of(DType dtype) {
  return find_fact([&](const Fact& f) { return f.dtype == dtype; }).value();
}

std::optional<int64_t> bytes_of(FileDType dtype, const GlobalShape& shape) {
  // The product leaves zeros out, so that strides of an empty tensor do not overflow either.
  int64_t bits = bits_of(dtype);
  bool empty = false;
  for (int64_t dim : shape.dims()) {
    if (dim < 0) return std::nullopt;
    if (dim == 0)
      empty = true;
    else if (__builtin_mul_overflow(bits, dim, &bits))
      return std::nullopt;
  }
  if (empty) return 0;
  if (bits % 8 != 0) return std::nullopt;
  return bits / 8;
}

}  // namespace sextant
