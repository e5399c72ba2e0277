// How token ids lie in a file, read from its bytes alone (mapping the file is token_file.h's work).
//   flat      ids back to back, no header (nanoGPT's .bin is u16)
//   llmc      llm.c's header of 256 i32 [magic, version, count], then u16 or u32 ids. llm.c counts to 2^31; from there
//   on we
//             use the next i32, which it leaves zero, for the upper half of the count
//   megatron  ids back to back in .bin, described by .idx (megatron_index.h)
// Everything is little-endian. What leaves has been checked against the file's size; what cannot be right is a
// UserError with file and byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sextant {

enum class TokenType : uint8_t { u8, i8, i16, u16, i32, u32, i64 };

int64_t size_of(TokenType type);
std::string_view name_of(TokenType type);                              // "u16"
std::optional<TokenType> token_type_from_name(std::string_view name);  // the inverse of name_of
int64_t largest_id(TokenType type);                                    // that fits the type and an int32_t

enum class TokenKind : uint8_t { flat, llmc, megatron };

std::string_view name_of(TokenKind kind);  // "flat"

struct TokenLayout {
  TokenKind kind = TokenKind::flat;
  TokenType type = TokenType::u16;
  int64_t first_byte = 0;  // of the first token
  int64_t tokens = 0;
};

TokenLayout flat_layout(int64_t file_bytes, TokenType type, std::string_view file);

// Whether 4-byte ids are likely to lie in what would be read as u16: a headerless file cannot say so itself. `most` is
// how many values are looked at.
bool looks_like_u32(std::span<const std::byte> bytes, size_t most = 8192);

// nullopt when the file does not begin with a magic number of llm.c.
std::optional<TokenLayout> llmc_layout(std::span<const std::byte> bytes, std::string_view file);

// The header before `tokens` ids of the type, which must be u16 or u32.
std::vector<std::byte> llmc_header(TokenType type, int64_t tokens);

// Decodes out.size() ids that begin at `from`. Returns how many came before the first that is not in [0, 2^31).
size_t decode_tokens(const std::byte* from, TokenType type, std::span<int32_t> out);

}  // namespace sextant
