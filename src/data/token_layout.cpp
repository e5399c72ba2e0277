#include "data/token_layout.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"
#include "data/little_endian.h"

namespace sextant {

namespace {

struct TokenTypeFact {
  TokenType type;
  std::string_view name;
  int64_t size;
  int64_t largest_id;
};

constexpr int64_t kMaxInt32 = std::numeric_limits<int32_t>::max();

constexpr std::array kTypes{
    TokenTypeFact{TokenType::u8, "u8", 1, 255},         TokenTypeFact{TokenType::i8, "i8", 1, 127},
    TokenTypeFact{TokenType::i16, "i16", 2, 32767},     TokenTypeFact{TokenType::u16, "u16", 2, 65535},
    TokenTypeFact{TokenType::i32, "i32", 4, kMaxInt32}, TokenTypeFact{TokenType::u32, "u32", 4, kMaxInt32},
    TokenTypeFact{TokenType::i64, "i64", 8, kMaxInt32},
};

const TokenTypeFact& fact(TokenType type) {
  for (const TokenTypeFact& f : kTypes)
    if (f.type == type) return f;
  BUG("unknown token type {}", static_cast<int>(type));
}

constexpr int64_t kLlmcHeaderBytes = 256 * 4;

struct LlmcFact {
  int32_t magic;
  int32_t version;
  std::string_view what;
  std::optional<TokenType> type;  // of its tokens; none: the file holds something else
};

constexpr std::array kLlmcFiles{
    LlmcFact{20240520, 1, "tokens", TokenType::u16},
    LlmcFact{20240801, 7, "tokens", TokenType::u32},
    LlmcFact{20240522, 1, "evaluation examples", std::nullopt},
    LlmcFact{20240326, 0, "model weights", std::nullopt},
    LlmcFact{20240327, 0, "a debug state", std::nullopt},
    LlmcFact{20240527, 0, "an optimizer state", std::nullopt},
    LlmcFact{20240328, 0, "a tokenizer", std::nullopt},
};

template <class T>
size_t decode_as(const std::byte* from, std::span<int32_t> out) {
  auto value = [from](size_t i) { return static_cast<int64_t>(load_le<T>(from + i * sizeof(T))); };
  uint64_t outside = 0;  // the bits no valid id has, gathered without a branch so that the loop becomes SIMD
  for (size_t i = 0; i < out.size(); ++i) {
    int64_t id = value(i);
    outside |= static_cast<uint64_t>(id) & ~static_cast<uint64_t>(kMaxInt32);
    out[i] = static_cast<int32_t>(id);
  }
  if (outside == 0) return out.size();
  size_t good = 0;
  while (value(good) >= 0 && value(good) <= kMaxInt32) ++good;
  return good;
}

}  // namespace

int64_t size_of(TokenType type) {
  return fact(type).size;
}
std::string_view name_of(TokenType type) {
  return fact(type).name;
}
int64_t largest_id(TokenType type) {
  return fact(type).largest_id;
}

std::optional<TokenType> token_type_from_name(std::string_view name) {
  for (const TokenTypeFact& f : kTypes)
    if (f.name == name) return f.type;
  return std::nullopt;
}

std::string_view name_of(TokenKind kind) {
  switch (kind) {
    case TokenKind::flat:
      return "flat";
    case TokenKind::llmc:
      return "llm.c";
    case TokenKind::megatron:
      return "Megatron";
  }
  BUG("unknown kind of token file {}", static_cast<int>(kind));
}

TokenLayout flat_layout(int64_t file_bytes, TokenType type, std::string_view file) {
  int64_t size = size_of(type);
  if (file_bytes % size != 0)
    throw UserError({.place = fmt::format("{} at byte {}", file, file_bytes - file_bytes % size),
                     .got = fmt::format("{} bytes are left over: the file has {} bytes", file_bytes % size, file_bytes),
                     .expected = fmt::format("a multiple of {} bytes, the size of {}", size, name_of(type)),
                     .hint = "the file is cut short, or its tokens have another type."});
  return {.kind = TokenKind::flat, .type = type, .first_byte = 0, .tokens = file_bytes / size};
}

bool looks_like_u32(std::span<const std::byte> bytes, size_t most) {
  constexpr size_t kFewest = 64;
  constexpr uint16_t kTiny = 64;  // upper halves of ids below 4 million
  if (bytes.size() % 4 != 0 || bytes.size() < kFewest * 2) return false;
  uint16_t low = 0, high = 0;  // the largest of the even and of the odd values
  for (size_t i = 0; i < std::min(bytes.size() / 2, most); i += 2) {
    low = std::max(low, load_le<uint16_t>(bytes.data() + i * 2));
    high = std::max(high, load_le<uint16_t>(bytes.data() + i * 2 + 2));
    if (high >= kTiny) return false;  // so that most files are known by their first tokens
  }
  // The upper halves of u32 ids are tiny; two neighbouring u16 ids come from the same distribution.
  return high == 0 ? low > 0 : low >= 4096;
}

std::optional<TokenLayout> llmc_layout(std::span<const std::byte> bytes, std::string_view file) {
  if (bytes.size() < 4) return std::nullopt;
  auto magic = load_le<int32_t>(bytes.data());
  const auto* found = std::find_if(kLlmcFiles.begin(), kLlmcFiles.end(), [&](auto& f) { return f.magic == magic; });
  if (found == kLlmcFiles.end()) return std::nullopt;

  auto refuse = [&](int at_byte, std::string got, std::string expected) {
    throw UserError(
        {.place = fmt::format("{} at byte {}", file, at_byte), .got = std::move(got), .expected = std::move(expected)});
  };
  if (!found->type) refuse(0, fmt::format("an llm.c file of {}", found->what), "a file of tokens");
  auto file_bytes = static_cast<int64_t>(bytes.size());
  if (file_bytes < kLlmcHeaderBytes)
    refuse(0, fmt::format("an llm.c header cut short after {} bytes", file_bytes), "1024 bytes");
  auto version = load_le<int32_t>(bytes.data() + 4);
  if (version != found->version)
    refuse(4, fmt::format("llm.c version {} with magic {}", version, magic), fmt::format("version {}", found->version));
  auto tokens = load_le<int64_t>(bytes.data() + 8);
  int64_t size = size_of(*found->type);
  if (tokens < 0 || tokens > file_bytes || file_bytes - kLlmcHeaderBytes != tokens * size)
    refuse(8, fmt::format("the header counts {} tokens, but {} bytes follow it", tokens, file_bytes - kLlmcHeaderBytes),
           fmt::format("{} bytes for each token ({})", size, name_of(*found->type)));
  return TokenLayout{.kind = TokenKind::llmc, .type = *found->type, .first_byte = kLlmcHeaderBytes, .tokens = tokens};
}

std::vector<std::byte> llmc_header(TokenType type, int64_t tokens) {
  const auto* fact = std::find_if(kLlmcFiles.begin(), kLlmcFiles.end(), [&](auto& f) { return f.type == type; });
  BUG_IF(fact == kLlmcFiles.end(), "llm.c has no files of {}", name_of(type));
  std::vector<std::byte> header(kLlmcHeaderBytes);
  store_le(fact->magic, header.data());
  store_le(fact->version, header.data() + 4);
  store_le(tokens, header.data() + 8);
  return header;
}

size_t decode_tokens(const std::byte* from, TokenType type, std::span<int32_t> out) {
  switch (type) {
    case TokenType::u8:
      return decode_as<uint8_t>(from, out);
    case TokenType::i8:
      return decode_as<int8_t>(from, out);
    case TokenType::i16:
      return decode_as<int16_t>(from, out);
    case TokenType::u16:
      return decode_as<uint16_t>(from, out);
    case TokenType::i32:
      return decode_as<int32_t>(from, out);
    case TokenType::u32:
      return decode_as<uint32_t>(from, out);
    case TokenType::i64:
      return decode_as<int64_t>(from, out);
  }
  BUG("unknown token type {}", static_cast<int>(type));
}

}  // namespace sextant
