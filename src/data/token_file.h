// A file of token ids, mapped. Enters a path: .bin (flat, llm.c, or Megatron when .idx stands beside it), .idx, a
// Megatron prefix, .u16, .u32 or .ds; leave its ids as int32_t, from any place in O(1). What the header and the index
// say has been checked against the files; ids are checked as they are read.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "data/megatron_index.h"
#include "data/token_layout.h"

namespace sextant {

struct TokenFileOptions {
  std::optional<TokenKind> kind;  // else found out from the name and the first bytes
  std::optional<TokenType> type;  // of a flat file, else from its name
};

struct MegatronPair {
  std::filesystem::path bin, idx;
};

// Of a prefix, or of either file.
MegatronPair megatron_pair(const std::filesystem::path& path);

class TokenFile {
 public:
  const std::string& name() const { return name_; }
  TokenKind kind() const { return layout_.kind; }
  TokenType type() const { return layout_.type; }
  int64_t token_count() const { return layout_.tokens; }
  int64_t bytes_on_disk() const;

  // Known in Megatron files only; elsewhere an end-of-text token marks them.
  std::optional<int64_t> document_count() const;
  int64_t document_begin(int64_t document) const;  // in tokens; that of document_count() is token_count()

  // Tokens [first, first + out.size()), which must lie in the file. UserError for an id that is no int32_t >= 0,
  // RunError when the file has become shorter.
  void read(int64_t first, std::span<int32_t> out) const;

  // Reads the whole file; UserError at the first id that is not below `vocab`.
  void check_vocab(int64_t vocab) const;

  std::string place_of(int64_t token) const;  // "train.bin at byte 2048 (token 1024)"

 private:
  friend TokenFile open_token_file(const std::filesystem::path& path, TokenFileOptions options);
  TokenFile(std::string name, MappedFile tokens, TokenLayout layout)
      : name_(std::move(name)), tokens_(std::move(tokens)), watch_(name_), layout_(layout) {}

  std::string name_;
  MappedFile tokens_;
  SizeWatch watch_;
  TokenLayout layout_;
  std::optional<MappedFile> index_file_;  // of Megatron
  std::optional<MegatronIndex> index_;    // points into index_file_
};

// Calls visit(first token, ids) for pieces of [begin, end), in order.
template <class Visit>
void for_each_piece(const TokenFile& file, int64_t begin, int64_t end, const Visit& visit) {
  std::vector<int32_t> piece(size_t{1} << 16);
  for (int64_t at = begin; at < end; at += static_cast<int64_t>(piece.size())) {
    std::span<int32_t> ids(piece.data(), static_cast<size_t>(std::min<int64_t>(end - at, std::ssize(piece))));
    file.read(at, ids);
    visit(at, std::span<const int32_t>(ids));
  }
}

// UserError when the file is not what it claims to be, or its type is unknown.
TokenFile open_token_file(const std::filesystem::path& path, TokenFileOptions options = {});

}  // namespace sextant
