#include "app/document_text.h"

#include <fmt/format.h>

#include "base/printable.h"
#include "data/text_source.h"

namespace sextant {

namespace {

// " (books.jsonl:43)", " (a.txt: document 3)": as complaints name a document.
std::string origin_text(const std::optional<DocumentOrigins::Origin>& origin) {
  if (!origin) return "";
  const DocumentFormat* format = text_format_of(origin->file);
  DocumentUnit unit = format ? format->unit : DocumentUnit::document;
  return fmt::format(" ({})", printable(document_place(origin->file, unit, origin->record)));
}

}  // namespace

std::string piece_text(const TracedPiece& piece) {
  if (!piece.document) return fmt::format("tokens {} to {} of the file", piece.token, piece.token + piece.tokens - 1);
  return fmt::format("document {}{} from token {}, {} token{}", *piece.document, origin_text(piece.origin),
                     piece.offset, piece.tokens, piece.tokens == 1 ? "" : "s");
}

std::string token_text(const TracedPiece& piece, int64_t offset) {
  if (!piece.document) return fmt::format("token {} of the file", piece.token + offset);
  return fmt::format("document {}{}, token {}", *piece.document, origin_text(piece.origin), piece.offset + offset);
}

}  // namespace sextant
