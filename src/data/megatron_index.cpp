#include "data/megatron_index.h"

#include <optional>

#include "base/error.h"
#include "data/little_endian.h"

namespace sextant {

namespace {

struct MegatronCode {
  uint8_t code;
  TokenType type;
};

constexpr std::array kCodes{MegatronCode{1, TokenType::u8},  MegatronCode{2, TokenType::i8},
                            MegatronCode{3, TokenType::i16}, MegatronCode{4, TokenType::i32},
                            MegatronCode{5, TokenType::i64}, MegatronCode{8, TokenType::u16}};

[[noreturn]] void refuse(std::string_view file, int64_t at_byte, std::string got, std::string expected,
                         std::string hint = "") {
  throw UserError({.place = fmt::format("{} at byte {}", file, at_byte),
                   .got = std::move(got),
                   .expected = std::move(expected),
                   .hint = std::move(hint)});
}

TokenType type_of_code(uint8_t code, std::string_view file) {
  for (const MegatronCode& c : kCodes)
    if (c.code == code) return c.type;
  // Megatron and GPT-NeoX disagree which of the two is f32 and which f64; neither is a token.
  bool is_float = code == 6 || code == 7;
  refuse(file, 17, fmt::format("type code {}{}", code, is_float ? ", which is a floating-point type" : ""),
         "1 (u8), 2 (i8), 3 (i16), 4 (i32), 5 (i64) or 8 (u16)");
}

}  // namespace

uint8_t megatron_code_of(TokenType type) {
  for (const MegatronCode& c : kCodes)
    if (c.type == type) return c.code;
  BUG("Megatron has no code for {}", name_of(type));
}

MegatronIndex::MegatronIndex(std::span<const std::byte> bytes, int64_t bin_bytes, std::string_view file)
    : bytes_(bytes) {
  read_header(file);
  check_sequences(bin_bytes, file);
  check_boundaries(file);
}

void MegatronIndex::read_header(std::string_view file) {
  auto file_bytes = static_cast<int64_t>(bytes_.size());
  std::string_view text(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
  if (text.starts_with("TNTIDX"))
    refuse(file, 0, "the older cached or lazy index (TNTIDX)", "a Megatron index (MMIDIDX)",
           "Convert it with the tools that wrote it.");
  if (!text.starts_with(kMegatronMagic)) refuse(file, 0, "no Megatron magic number", "MMIDIDX and two zero bytes");
  if (file_bytes < kMegatronHeaderBytes)
    refuse(file, file_bytes, "the header is cut short", fmt::format("{} bytes", kMegatronHeaderBytes));
  if (auto version = load_le<uint64_t>(&bytes_[9]); version != kMegatronVersion)
    refuse(file, 9, fmt::format("version {}", version), fmt::format("version {}", kMegatronVersion));
  type_ = type_of_code(load_le<uint8_t>(&bytes_[17]), file);

  auto sequences = load_le<uint64_t>(&bytes_[18]), boundaries = load_le<uint64_t>(&bytes_[26]);
  auto room = static_cast<uint64_t>(file_bytes - kMegatronHeaderBytes);
  // Each count is held to the file's size before it is multiplied, so that hostile counts cannot overflow.
  if (sequences > room / 12 || boundaries > (room - 12 * sequences) / 8)
    refuse(file, 18, fmt::format("{} sequences and {} document boundaries in {} bytes", sequences, boundaries, room),
           "12 bytes for each sequence and 8 for each boundary", "The index is cut short or damaged.");
  uint64_t left = room - 12 * sequences - 8 * boundaries;
  sequences_ = static_cast<int64_t>(sequences);
  boundaries_ = static_cast<int64_t>(boundaries);
  if (left == sequences && left > 0)
    refuse(file, boundaries_at() + 8 * boundaries_, "an index with sequence modes, which is multimodal", "text only");
  if (left > 0)
    refuse(file, boundaries_at() + 8 * boundaries_, fmt::format("{} bytes after the last boundary", left), "none");
}

void MegatronIndex::check_sequences(int64_t bin_bytes, std::string_view file) {
  const int64_t size = size_of(type_);
  int64_t at = 0;  // in .bin; never beyond bin_bytes, so the sums below cannot overflow
  for (int64_t i = 0; i < sequences_; ++i) {
    auto length = load_le<int32_t>(&bytes_[static_cast<size_t>(lengths_at() + 4 * i)]);
    if (length < 0)
      refuse(file, lengths_at() + 4 * i, fmt::format("sequence {} has {} tokens", i, length), "0 or more");
    if (offset(i) != at)
      refuse(file, offsets_at() + 8 * i, fmt::format("sequence {} begins at byte {} of the .bin", i, offset(i)),
             fmt::format("byte {}, where the one before it ends", at));
    at += length * size;
    if (at > bin_bytes)
      refuse(file, lengths_at() + 4 * i,
             fmt::format("sequence {} ends at byte {} of the .bin, which has {} bytes", i, at, bin_bytes),
             "an end inside it", "The .bin is cut short, or belongs to another .idx.");
  }
  if (at != bin_bytes)
    refuse(file, lengths_at(), fmt::format("the sequences fill {} bytes of the .bin, which has {}", at, bin_bytes),
           "all of it", "The .bin belongs to another .idx, or was written further after it.");
  tokens_ = bin_bytes / size;
}

void MegatronIndex::check_boundaries(std::string_view file) const {
  if (boundaries_ == 0) refuse(file, 26, "no document boundary", "one at least");
  int64_t before = 0;
  for (int64_t i = 0; i < boundaries_; ++i) {
    int64_t at = boundary(i), byte = boundaries_at() + 8 * i;
    if (i == 0 && at != 0) refuse(file, byte, fmt::format("the first boundary is sequence {}", at), "sequence 0");
    if (at < before || at > sequences_)
      refuse(file, byte, fmt::format("boundary {} is sequence {}", i, at),
             fmt::format("one from {} to {}", before, sequences_));
    before = at;
  }
  if (before != sequences_)
    refuse(file, boundaries_at() + 8 * (boundaries_ - 1), fmt::format("the last boundary is sequence {}", before),
           fmt::format("sequence {}, the number of sequences", sequences_));
}

int64_t MegatronIndex::offset(int64_t sequence) const {
  return load_le<int64_t>(&bytes_[static_cast<size_t>(offsets_at() + 8 * sequence)]);
}

int64_t MegatronIndex::boundary(int64_t document) const {
  return load_le<int64_t>(&bytes_[static_cast<size_t>(boundaries_at() + 8 * document)]);
}

int64_t MegatronIndex::document_begin(int64_t document) const {
  int64_t sequence = boundary(document);
  return sequence == sequences_ ? tokens_ : offset(sequence) / size_of(type_);
}

}  // namespace sextant
