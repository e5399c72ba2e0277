#include "data/token_writer.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"
#include "data/little_endian.h"
#include "data/megatron_index.h"
#include "data/token_file.h"

namespace sextant {

namespace {

// Encodes pieces of this many ids at a time, so that a long document needs no second copy of its length.
constexpr size_t kPiece = size_t{1} << 16;

template <class T>
void encode_as(std::span<const int32_t> ids, std::byte* to) {
  for (size_t i = 0; i < ids.size(); ++i) store_le(static_cast<T>(ids[i]), to + i * sizeof(T));
}

void encode(std::span<const int32_t> ids, TokenType type, std::byte* to) {
  switch (type) {
    case TokenType::u8:
    case TokenType::i8:
      return encode_as<uint8_t>(ids, to);
    case TokenType::i16:
    case TokenType::u16:
      return encode_as<uint16_t>(ids, to);
    case TokenType::i32:
    case TokenType::u32:
      return encode_as<uint32_t>(ids, to);
    case TokenType::i64:
      return encode_as<int64_t>(ids, to);
  }
  BUG("unknown token type {}", static_cast<int>(type));
}

// Collects small values into pieces worth a write.
class ValueWriter {
 public:
  explicit ValueWriter(AppendedFile& file) : file_(file) {}

  template <class T>
  void put(T value) {
    if (used_ + sizeof(T) > buffer_.size()) flush();
    store_le(value, buffer_.data() + used_);
    used_ += sizeof(T);
  }

  void flush() {
    file_.write({buffer_.data(), used_});
    used_ = 0;
  }

 private:
  AppendedFile& file_;
  std::array<std::byte, 4096> buffer_;
  size_t used_ = 0;
};

}  // namespace

TokenType token_type_for(int64_t vocab, TokenKind kind) {
  // Megatron's own writer changes the type a little before u16 is full.
  if (kind == TokenKind::megatron) return vocab < 65500 ? TokenType::u16 : TokenType::i32;
  return vocab <= 65536 ? TokenType::u16 : TokenType::u32;
}

TokenFormat token_format_for(int64_t vocab, const std::filesystem::path& path) {
  const TokenType least = token_type_for(vocab, TokenKind::flat);
  if (path.extension() == ".u32") return {TokenKind::flat, TokenType::u32};
  if (least == TokenType::u16) return {TokenKind::flat, TokenType::u16};
  if (path.extension() == ".u16")
    throw UserError({.place = path.string(),
                     .got = fmt::format("the name says u16, but the tokenizer has {} ids", vocab),
                     .expected = "a name ending in .bin or .u32"});
  return {TokenKind::llmc, least};
}

TokenWriter::TokenWriter(const std::filesystem::path& path, TokenWriterOptions options)
    : name_(path.string()), options_(options), encoded_(kPiece * static_cast<size_t>(size_of(options.type))) {
  switch (options.kind) {
    case TokenKind::flat:
      bin_ = std::make_unique<AppendedFile>(path);
      return;
    case TokenKind::llmc:
      if (options.type != TokenType::u16 && options.type != TokenType::u32)
        throw UserError({.place = name_,
                         .got = fmt::format("files of llm.c cannot hold {}", name_of(options.type)),
                         .expected = "u16 or u32"});
      bin_ = std::make_unique<AppendedFile>(path);
      bin_->write(llmc_header(options.type, 0));
      return;
    case TokenKind::megatron:
      break;
  }
  if (options.type == TokenType::u32)
    throw UserError({.place = name_, .got = "Megatron files cannot hold u32", .expected = "i32 or u16"});
  MegatronPair pair = megatron_pair(path);
  bin_ = std::make_unique<AppendedFile>(pair.bin);
  idx_ = std::make_unique<AppendedFile>(pair.idx);
}

void TokenWriter::append_document(std::span<const int32_t> ids) {
  int64_t length = std::ssize(ids) + (options_.end_of_text ? 1 : 0);
  if (idx_ && length > std::numeric_limits<int32_t>::max())
    throw UserError({.place = name_,
                     .got = fmt::format("document {} has {} tokens", documents_, length),
                     .expected = "fewer than 2^31, which Megatron can count"});
  append(ids);
  if (options_.end_of_text) append({&*options_.end_of_text, 1});
  if (idx_) lengths_.push_back(static_cast<int32_t>(length));
  ++documents_;
}

void TokenWriter::append(std::span<const int32_t> ids) {
  const int64_t largest = largest_id(options_.type), size = size_of(options_.type);
  while (!ids.empty()) {
    std::span<const int32_t> piece = ids.first(std::min(ids.size(), kPiece));
    for (int32_t id : piece)
      if (id < 0 || id > largest)
        throw UserError({.place = fmt::format("{}: document {}", name_, documents_),
                         .got = fmt::format("token id {}", id),
                         .expected = fmt::format("0 to {}, which {} can hold", largest, name_of(options_.type)),
                         .hint = "Choose a wider type for this vocabulary."});
    encode(piece, options_.type, encoded_.data());
    bin_->write({encoded_.data(), piece.size() * static_cast<size_t>(size)});
    tokens_ += std::ssize(piece);
    ids = ids.subspan(piece.size());
  }
}

void TokenWriter::finish() {
  if (options_.kind == TokenKind::llmc) bin_->rewrite_front(llmc_header(options_.type, tokens_));
  if (idx_) {
    // Both are on disk before either has its name. The index comes first: without its .bin, or with an older one, it
    // is refused, whereas a .bin alone would pass for a flat file.
    write_index();
    idx_->flush();
    bin_->flush();
    idx_->commit();
  }
  bin_->commit();
}

void TokenWriter::write_index() {
  ValueWriter out(*idx_);
  for (char c : kMegatronMagic) out.put(c);
  out.put(kMegatronVersion);
  out.put(megatron_code_of(options_.type));
  out.put(static_cast<uint64_t>(lengths_.size()));
  out.put(static_cast<uint64_t>(lengths_.size() + 1));
  for (int32_t length : lengths_) out.put(length);
  int64_t offset = 0;
  for (int32_t length : lengths_) {
    out.put(offset);
    offset += length * size_of(options_.type);
  }
  for (int64_t boundary = 0; boundary <= std::ssize(lengths_); ++boundary) out.put(boundary);
  out.flush();
}

}  // namespace sextant
