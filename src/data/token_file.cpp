#include "data/token_file.h"

#include "base/error.h"
#include "base/hub_hint.h"
#include "base/path_error.h"
#include "base/units.h"
#include "data/foreign_file.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

bool is_file(const fs::path& path) {
  return fs::is_regular_file(look_at(path));
}

// By the name alone: a Megatron index, or one standing beside the file.
bool is_megatron(const fs::path& path) {
  if (path.extension() == ".idx") return true;
  return (path.extension() == ".bin" || !is_file(path)) && is_file(megatron_pair(path).idx);
}

std::optional<TokenType> type_of_name(const fs::path& path) {
  if (path.extension() == ".u16") return TokenType::u16;
  if (path.extension() == ".u32") return TokenType::u32;
  return std::nullopt;
}

// A stated u16 is believed, unless no text could make such tokens: over so many values, every second one is zero, or
// tiny beside its neighbours.
void require_u16(const fs::path& path, std::span<const std::byte> bytes) {
  constexpr size_t kMost = size_t{1} << 24;
  if (!looks_like_u32(bytes, kMost)) return;
  throw UserError({.place = path.string(),
                   .got = "read as u16, every second id is 0 or tiny, as in a file of u32",
                   .expected = "u16 tokens, as stated",
                   .hint = "set data.format = \"tokens-u32\", or name the file .u32"});
}

// An index beside a file that is read without it must not contradict.
void require_index_agrees(const fs::path& path, TokenType type, std::span<const std::byte> bytes) {
  if (path.extension() != ".bin" || !is_megatron(path)) return;
  MegatronPair pair = megatron_pair(path);
  MappedFile idx(pair.idx);
  if (!idx.text().starts_with(kMegatronMagic)) return;
  TokenType stated = MegatronIndex(idx.bytes(), static_cast<int64_t>(bytes.size()), pair.idx.string()).type();
  if (stated == type) return;
  throw UserError({.place = path.string(),
                   .got = fmt::format("{} says that its tokens are {}", pair.idx.string(), name_of(stated)),
                   .expected = fmt::format("{}, as stated", name_of(type)),
                   .hint = "leave data.format out: the index says the type"});
}

TokenType flat_type(const fs::path& path, TokenFileOptions options, std::span<const std::byte> bytes) {
  if (auto stated = options.type ? options.type : type_of_name(path)) {
    if (*stated == TokenType::u16) require_u16(path, bytes);
    require_index_agrees(path, *stated, bytes);
    return *stated;
  }
  if (path.extension() != ".bin" && path.extension() != ".ds") throw UserError(complaint_about_unknown(path, bytes));
  if (looks_like_u32(bytes))
    throw UserError({.place = path.string(),
                     .got = "a headerless file is taken for u16, but this one looks like u32",
                     .expected = "a type",
                     .hint = "set data.format = \"tokens-u32\", or name the file .u32"});
  return TokenType::u16;
}

// Its header would be read as tokens.
void refuse_numpy(const fs::path& path, std::span<const std::byte> bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with("\x93NUMPY")) return;
  throw UserError(
      {.place = fmt::format("{} at byte 0", path.string()),
       .got = "a NumPy array, with a header",
       .expected = "tokens without a header",
       .hint = fmt::format("python3 -c \"import numpy as n; n.load('{0}').astype('<u4').tofile('{0}.u32')\" "
                           "makes a token file of it",
                           path.string())});
}

TokenLayout layout_without_index(const fs::path& path, TokenFileOptions options, std::span<const std::byte> bytes) {
  refuse_numpy(path, bytes);
  auto layout = llmc_layout(bytes, path.string());
  if (layout && options.kind == TokenKind::flat)
    throw UserError(
        {.place = fmt::format("{} at byte 0", path.string()),
         .got = fmt::format("a header of llm.c, which says {} tokens of {}", layout->tokens, name_of(layout->type)),
         .expected = "tokens without a header, as stated",
         .hint = "leave data.format out: the header says the type"});
  if (layout) return *layout;
  if (options.kind == TokenKind::llmc)
    throw UserError({.place = fmt::format("{} at byte 0", path.string()),
                     .got = "no magic number of llm.c",
                     .expected = "20240520 or 20240801"});
  return flat_layout(static_cast<int64_t>(bytes.size()), flat_type(path, options, bytes), path.string());
}

}  // namespace

MegatronPair megatron_pair(const fs::path& path) {
  fs::path prefix = path;
  if (path.extension() == ".bin" || path.extension() == ".idx") prefix.replace_extension();
  MegatronPair pair{prefix, prefix};
  pair.bin += ".bin";
  pair.idx += ".idx";
  return pair;
}

TokenFile open_token_file(const fs::path& path, TokenFileOptions options) {
  auto check_type = [&](TokenFile file) {
    if (options.type && *options.type != file.type())
      throw UserError({.place = file.name(),
                       .got = fmt::format("the file says that its tokens are {}", name_of(file.type())),
                       .expected = fmt::format("{}, as stated", name_of(*options.type))});
    return file;
  };
  if (options.kind.value_or(is_megatron(path) ? TokenKind::megatron : TokenKind::flat) == TokenKind::megatron) {
    MegatronPair pair = megatron_pair(path);
    MappedFile idx(pair.idx), bin(pair.bin);
    MegatronIndex index(idx.bytes(), static_cast<int64_t>(bin.size()), pair.idx.string());
    TokenFile file(pair.bin.string(), std::move(bin),
                   {.kind = TokenKind::megatron, .type = index.type(), .first_byte = 0, .tokens = index.tokens()});
    file.index_file_ = std::move(idx);
    file.index_ = index;
    return check_type(std::move(file));
  }
  if (look_at(path).type() == fs::file_type::not_found)
    throw UserError({.place = path.string(),
                     .got = "file not found",
                     .expected = "text, tokens, or a folder of text",
                     .hint = dataset_download_hint(path.string())});
  MappedFile mapped(path);
  if (!options.kind && !options.type)
    if (auto complaint = complaint_about_kind(path)) throw UserError(*complaint);
  TokenLayout layout = layout_without_index(path, options, mapped.bytes());
  return check_type(TokenFile(path.string(), std::move(mapped), layout));
}

int64_t TokenFile::bytes_on_disk() const {
  return static_cast<int64_t>(tokens_.size() + (index_file_ ? index_file_->size() : 0));
}

std::optional<int64_t> TokenFile::document_count() const {
  return index_ ? std::optional(index_->documents()) : std::nullopt;
}

int64_t TokenFile::document_begin(int64_t document) const {
  BUG_IF(!index_ || document < 0 || document > index_->documents(), "no document {} in {}", document, name_);
  return index_->document_begin(document);
}

void TokenFile::read(int64_t first, std::span<int32_t> out) const {
  BUG_IF(first < 0 || std::ssize(out) > token_count() - first, "tokens {} to {} of {} in {}", first,
         first + std::ssize(out), token_count(), name_);
  if (out.empty()) return;
  watch_.check();
  const std::byte* from = tokens_.bytes().data() + layout_.first_byte + first * size_of(type());
  size_t good = decode_tokens(from, type(), out);
  if (good < out.size())
    throw UserError({.place = place_of(first + static_cast<int64_t>(good)),
                     .got = fmt::format("this {} is not a token id", name_of(type())),
                     .expected = "a number from 0 to 2^31 - 1",
                     .hint = "The file is damaged, or has another type."});
}

void TokenFile::check_vocab(int64_t vocab) const {
  for_each_piece(*this, 0, token_count(), [&](int64_t first, std::span<const int32_t> ids) {
    int32_t largest = 0;
    for (int32_t id : ids) largest = std::max(largest, id);
    if (largest < vocab) return;
    auto bad = std::find_if(ids.begin(), ids.end(), [&](int32_t id) { return id >= vocab; });
    throw UserError({.place = place_of(first + (bad - ids.begin())),
                     .got = fmt::format("token id {}", *bad),
                     .expected = fmt::format("an id below {}, the vocabulary", human_count(vocab)),
                     .hint = "The tokens were made with another tokenizer, or have another type."});
  });
}

std::string TokenFile::place_of(int64_t token) const {
  return fmt::format("{} at byte {} (token {})", name_, layout_.first_byte + token * size_of(type()), token);
}

}  // namespace sextant
