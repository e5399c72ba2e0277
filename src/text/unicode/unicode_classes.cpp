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

UnicodeTraits::UnicodeTraits() {
  auto add = [&](std::span<const CodeRange> ranges, CharTraits trait) {
    char32_t last = ranges.back().last;
    if (traits_.size() <= last) traits_.resize(last + 1);
    for (CodeRange range : ranges)
      for (char32_t code = range.first; code <= range.last; ++code) traits_[code] = traits_[code] | trait;
  };
  auto add_categories = [&](std::initializer_list<std::string_view> names, CharTraits trait) {
    for (std::string_view name : names) {
      CharProperty property = *unicode_property(name);
      add(property.codes.ranges(), trait);
    }
  };
  add_categories({"Lu", "Lt", "Lm", "Lo", "M"}, kBeginsWord);
  add_categories({"Ll", "Lm", "Lo", "M"}, kGoesOnInWord);
  add_categories({"L"}, kLetter);
  add_categories({"M"}, kMark);
  add_categories({"P", "S"}, kSign);
  add(kPunctuation, kPunctuationMark);
}

const UnicodeTraits& UnicodeTraits::get() {
  static const UnicodeTraits traits;
  return traits;
}

bool is_word_character(char32_t code) {
  static const std::vector<bool> kWords = flags_of(kWordCharacters);
  return code < kWords.size() && kWords[code];
}

}  // namespace sextant
