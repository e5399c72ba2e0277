// How verbs name a document of the training data.
#pragma once

#include <string>

#include "train/data/step_trace.h"

namespace sextant {

// "document 7 (books.jsonl:43) from token 12, 40 tokens"; of files whose documents cannot be told apart
// "tokens 100 to 139 of the file".
std::string piece_text(const TracedPiece& piece);

// "document 7 (books.jsonl:43), token 14": the token `offset` behind the piece's first.
std::string token_text(const TracedPiece& piece, int64_t offset);

}  // namespace sextant
