#include "data/document_index.h"

#include "base/error.h"

namespace sextant {

int64_t DocumentIndex::count() const {
  return file_->document_count().value_or(std::ssize(begins_));
}

int64_t DocumentIndex::begin(int64_t document) const {
  if (file_->document_count()) return file_->document_begin(document);
  return document == std::ssize(begins_) ? file_->token_count() : begins_[static_cast<size_t>(document)];
}

TokenRange DocumentIndex::range(int64_t document) const {
  return {begin(document), begin(document + 1)};
}

int64_t DocumentIndex::document_at(int64_t token) const {
  BUG_IF(token < 0 || token >= file_->token_count(), "token {} of {} in {}", token, file_->token_count(),
         file_->name());
  // The last document that begins at the token or before it: others with the same begin are empty.
  int64_t low = 0, high = count();
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    (begin(middle) <= token ? low : high) = middle;
  }
  return low;
}

std::optional<DocumentIndex> index_documents(std::shared_ptr<const TokenFile> file,
                                             std::optional<int32_t> end_of_text) {
  DocumentIndex index(std::move(file));
  const TokenFile& tokens = *index.file_;
  if (tokens.document_count()) return index;
  if (!end_of_text) return std::nullopt;
  int64_t begin = 0;
  for_each_piece(tokens, 0, tokens.token_count(), [&](int64_t first, std::span<const int32_t> ids) {
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] != *end_of_text) continue;
      index.begins_.push_back(begin);
      begin = first + static_cast<int64_t>(i) + 1;
    }
  });
  if (begin < tokens.token_count()) index.begins_.push_back(begin);  // the last one has no mark
  return index;
}

}  // namespace sextant
