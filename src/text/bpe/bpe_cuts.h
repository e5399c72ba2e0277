// Cuts text where no merge can reach across. Without a pre-tokenizer that splits, a whole document is one piece;
// parts of it merge on their own wherever no merge has a left side that ends with the one character and a right side
// that begins with the other.
#pragma once

#include <memory>
#include <string_view>

#include "text/bpe/bpe_merges.h"
#include "text/bpe/bpe_symbols.h"
#include "text/split/split.h"

namespace sextant {

struct MergeBoundary {
  char32_t left, right;  // the last character of the left side, and the first of the right side
};

// `symbols` must outlive it.
std::unique_ptr<Splitter> cut_between_merges(std::span<const MergeBoundary> boundaries, const BpeSymbols& symbols);

}  // namespace sextant
