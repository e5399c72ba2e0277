#include "data/token_selection.h"

namespace sextant {

TokenSelection::TokenSelection(TokenRange range) {
  add(range);
}

TokenSelection::TokenSelection(const std::vector<TokenRange>& ranges) {
  for (const TokenRange& range : ranges) add(range);
}

void TokenSelection::add(TokenRange range) {
  if (range.size() <= 0) return;
  if (!ranges_.empty() && ranges_.back().end == range.begin) {
    ranges_.back().end = range.end;
    ends_.back() += range.size();
    return;
  }
  ranges_.push_back(range);
  ends_.push_back(size() + range.size());
}

}  // namespace sextant
