#include "text/unicode/unicode_classes.h"

#include <algorithm>
#include <iterator>

#include "text/unicode/unicode_properties.h"

namespace sextant {

namespace {

#include "text/unicode/unicode_classes.inc"

}  // namespace

UnicodeKinds::UnicodeKinds() {
  auto fill = [&](const CodeSet& codes, CharKind kind) {
    char32_t last = codes.ranges().back().last;
    if (kinds_.size() <= last) kinds_.resize(last + 1, CharKind::other);
    for (CodeRange range : codes.ranges()) std::fill(&kinds_[range.first], &kinds_[range.last] + 1, kind);
  };
  fill(unicode_property("L")->codes, CharKind::letter);
  fill(unicode_property("N")->codes, CharKind::number);
  fill(white_space(), CharKind::space);
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
