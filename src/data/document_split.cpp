#include "data/document_split.h"

#include <algorithm>
#include <cmath>

#include "data/permutation.h"

namespace sextant {

std::optional<DocumentSplit> split_documents(const DocumentIndex& documents, double share, uint64_t key) {
  const int64_t count = documents.count();
  const auto held_out = static_cast<int64_t>(std::llround(static_cast<double>(count) * share));
  if (held_out < 1 || held_out >= count) return std::nullopt;
  Permutation shuffle(count, key);
  std::vector<int64_t> chosen;
  chosen.reserve(static_cast<size_t>(held_out));
  for (int64_t i = 0; i < held_out; ++i) chosen.push_back(shuffle(i));

  std::vector<TokenRange> train, validation;
  for (int64_t document : chosen) validation.push_back(documents.range(document));
  std::sort(chosen.begin(), chosen.end());
  int64_t begin = 0;
  for (int64_t document : chosen) {
    TokenRange range = documents.range(document);
    train.push_back({begin, range.begin});
    begin = range.end;
  }
  train.push_back({begin, documents.range(count - 1).end});
  return DocumentSplit{TokenSelection(train), TokenSelection(validation)};
}

}  // namespace sextant
