#include "data/unicode_classes.h"

#include <algorithm>
#include <iterator>

namespace sextant {

namespace {

struct CodeRange {
  char32_t first, last;
};

#include "data/unicode_classes.inc"

}  // namespace

UnicodeKinds::UnicodeKinds() {
  char32_t last = std::max({std::rbegin(kLetters)->last, std::rbegin(kNumbers)->last, std::rbegin(kSpaces)->last});
  kinds_.resize(last + 1, CharKind::other);
  auto fill = [&](const auto& ranges, CharKind kind) {
    for (CodeRange range : ranges) std::fill(&kinds_[range.first], &kinds_[range.last] + 1, kind);
  };
  fill(kLetters, CharKind::letter);
  fill(kNumbers, CharKind::number);
  fill(kSpaces, CharKind::space);
}

const UnicodeKinds& UnicodeKinds::get() {
  static const UnicodeKinds kinds;
  return kinds;
}

bool is_word_character(char32_t code) {
  auto after = std::upper_bound(std::begin(kWordCharacters), std::end(kWordCharacters), code,
                                [](char32_t c, CodeRange range) { return c < range.first; });
  return after != std::begin(kWordCharacters) && code <= std::prev(after)->last;
}

}  // namespace sextant
