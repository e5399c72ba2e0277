// Documents to a token file. They are tokenized in batches: the team's threads share a batch, and memory stays bounded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

#include "base/threads.h"
#include "data/token_writer.h"
#include "text/tokenizer.h"

namespace sextant {

using DocumentVisitor = std::function<void(std::string_view document)>;
using Documents = std::function<void(const DocumentVisitor&)>;  // calls the visitor with every document

struct TokenOutput {
  std::filesystem::path path;
  TokenFormat format;
};

struct TokenizeSummary {
  int64_t documents = 0;
  int64_t tokens = 0;  // with the tokens put around each document
  int64_t text_bytes = 0;
};

// UserError, with `option` as the way to name it, where the tokenizer does not tell which token ends a document:
// documents would be joined with nothing between them.
void require_end_of_text(const Tokenizer& tokenizer, std::string_view place, std::string_view option);

// Each document is what HF's encode(add_special_tokens=True) gives, followed by the end-of-text token unless it ends
// with that.
TokenizeSummary tokenize_documents(const Documents& documents, const Tokenizer& tokenizer, const TokenOutput& output,
                                   ThreadTeam& team);

}  // namespace sextant
