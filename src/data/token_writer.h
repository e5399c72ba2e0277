// Writes token files: flat, of llm.c, or Megatron's. Enter the documents' ids, one after the other; leaves, after
// finish(), a whole file (or pair) under its name, each document followed by the end-of-text token. Without finish()
// nothing is left.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "data/appended_file.h"
#include "data/token_layout.h"

namespace sextant {

struct TokenWriterOptions {
  TokenKind kind = TokenKind::flat;
  TokenType type = TokenType::u16;     // of llm.c: u16 or u32
  std::optional<int32_t> end_of_text;  // appended to every document
};

// The smallest type for ids below `vocab` that readers of that kind expect.
TokenType token_type_for(int64_t vocab, TokenKind kind);

// Format in which open_token_file reads a file of this name without further options: flat u16 where that holds the
// vocabulary or the name says which type, else a file with a header (llm.c's), since flat u32 would be read as u16.
// UserError for a name that says u16 when the vocabulary is larger.
struct TokenFormat {
  TokenKind kind = TokenKind::flat;
  TokenType type = TokenType::u16;
};
TokenFormat token_format_for(int64_t vocab, const std::filesystem::path& path);

class TokenWriter {
 public:
  // Of a Megatron pair the path is the prefix or either file.
  TokenWriter(const std::filesystem::path& path, TokenWriterOptions options);

  // UserError for an id that the type cannot hold.
  void append_document(std::span<const int32_t> ids);

  void finish();

  int64_t token_count() const { return tokens_; }
  int64_t document_count() const { return documents_; }

 private:
  void append(std::span<const int32_t> ids);
  void write_index();

  std::string name_;
  TokenWriterOptions options_;
  std::unique_ptr<AppendedFile> bin_;
  std::unique_ptr<AppendedFile> idx_;  // of Megatron
  std::vector<int32_t> lengths_;       // of Megatron's sequences, one a document
  std::vector<std::byte> encoded_;
  int64_t tokens_ = 0;
  int64_t documents_ = 0;
};

}  // namespace sextant
