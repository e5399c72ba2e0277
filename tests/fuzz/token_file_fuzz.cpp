// Any bytes as an .idx, as an llm.c file and as flat tokens: refused with a UserError, or read within bounds.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "data/little_endian.h"
#include "data/megatron_index.h"

namespace {

using namespace sextant;

void read_index(std::span<const std::byte> bytes) {
  if (bytes.size() < 4) return;
  int64_t bin_bytes = load_le<uint32_t>(bytes.data());
  MegatronIndex index(bytes.subspan(4), bin_bytes, "fuzz.idx");
  int64_t before = 0;
  for (int64_t i = 0; i <= index.documents(); ++i) {
    int64_t begin = index.document_begin(i);
    BUG_IF(begin < before || begin > index.tokens(), "document {} begins at {} of {}", i, begin, index.tokens());
    before = begin;
  }
  BUG_IF(before != index.tokens(), "documents end at {} of {}", before, index.tokens());
}

void read_tokens(std::span<const std::byte> bytes, const TokenLayout& layout) {
  std::vector<int32_t> ids(static_cast<size_t>(layout.tokens));
  size_t good = decode_tokens(bytes.data() + layout.first_byte, layout.type, ids);
  for (size_t i = 0; i < good; ++i) BUG_IF(ids[i] < 0, "token {} is {}", i, ids[i]);
}

template <class Body>
void expect_user_error_or_success(const Body& body) {
  try {
    body();
  } catch (const UserError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  expect_user_error_or_success([&] { read_index(bytes); });
  expect_user_error_or_success([&] {
    if (auto layout = llmc_layout(bytes, "fuzz.bin")) read_tokens(bytes, *layout);
  });
  looks_like_u32(bytes);
  for (const char* type : {"u8", "i8", "i16", "u16", "i32", "u32", "i64"})
    expect_user_error_or_success(
        [&] { read_tokens(bytes, flat_layout(static_cast<int64_t>(size), *token_type_from_name(type), "fuzz.bin")); });
  return 0;
}
