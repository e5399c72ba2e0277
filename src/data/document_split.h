// A held-out sample of documents. Enter where documents begin, the share of them and a key; leave the tokens to train
// on, in the order of the file, and the tokens held out. Which documents those are follows from key and number of
// documents alone: the first round(share × documents) of a shuffle (permutation.h). So the share is exact, and a larger
// one holds out the same documents and more.
//
// Held-out documents stand in the order of the shuffle: the beginning of the validation data, which is what is measured
// when it is long, is then itself a sample of the whole file.
#pragma once

#include <cstdint>
#include <optional>

#include "data/document_index.h"
#include "data/token_selection.h"

namespace sextant {

struct DocumentSplit {
  TokenSelection train, validation;
};

// nullopt: too few documents for the share, it would be none of them or all.
std::optional<DocumentSplit> split_documents(const DocumentIndex& documents, double share, uint64_t key);

}  // namespace sextant
