// Megatron's .idx, which says where sequences and documents lie in its .bin.
//   0 "MMIDIDX" and two zero bytes | 9 u64 version 1 | 17 u8 type | 18 u64 S sequences | 26 u64 D boundaries
//   34 S × i32 tokens per sequence | S × i64 byte offset in .bin | D × i64 sequence at each document boundary
// Enter the bytes of .idx and the size of .bin; leaves an index in which sequences lie back to back and fill the .bin,
// and boundaries rise from 0 to S. Anything else is a UserError with file and byte.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "data/token_layout.h"

namespace sextant {

inline constexpr std::string_view kMegatronMagic{"MMIDIDX\0\0", 9};
inline constexpr uint64_t kMegatronVersion = 1;
inline constexpr int64_t kMegatronHeaderBytes = 34;

uint8_t megatron_code_of(TokenType type);  // BUG for u32, which Megatron does not have

class MegatronIndex {
 public:
  // `bytes` must outlive the index; `file` is the name of the .idx, for complaints.
  MegatronIndex(std::span<const std::byte> bytes, int64_t bin_bytes, std::string_view file);

  TokenType type() const { return type_; }
  int64_t tokens() const { return tokens_; }
  int64_t sequences() const { return sequences_; }
  int64_t documents() const { return boundaries_ - 1; }

  // The first token of a document; that of documents() is tokens(). O(1).
  int64_t document_begin(int64_t document) const;

 private:
  void read_header(std::string_view file);
  void check_sequences(int64_t bin_bytes, std::string_view file);
  void check_boundaries(std::string_view file) const;

  int64_t lengths_at() const { return kMegatronHeaderBytes; }
  int64_t offsets_at() const { return kMegatronHeaderBytes + 4 * sequences_; }
  int64_t boundaries_at() const { return kMegatronHeaderBytes + 12 * sequences_; }
  int64_t offset(int64_t sequence) const;
  int64_t boundary(int64_t document) const;

  std::span<const std::byte> bytes_;
  TokenType type_ = TokenType::u16;
  int64_t tokens_ = 0;
  int64_t sequences_ = 0;
  int64_t boundaries_ = 0;
};

}  // namespace sextant
