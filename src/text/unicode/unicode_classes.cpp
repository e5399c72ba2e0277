#include "text/unicode/unicode_classes.h"

#include <algorithm>
#include <span>

#include "text/unicode/unicode_properties.h"

namespace sextant {

namespace {

#include "text/unicode/unicode_classes.inc"

// One per code point, up to the last that is in the ranges.
std::vector<bool> flags_of(std::span<const CodeRange> ranges) {
  std::vector<bool> flags(ranges.back().last + 1);
  for (CodeRange range : ranges)
    for (char32_t code = range.first; code <= range.last; ++code) flags[code] = true;
  return flags;
}

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
  static const std::vector<bool> kWords = flags_of(kWordCharacters);
  return code < kWords.size() && kWords[code];
}

bool is_punctuation(char32_t code) {
  static const std::vector<bool> kMarks = flags_of(kPunctuation);
  return code < kMarks.size() && kMarks[code];
}

}  // namespace sextant
