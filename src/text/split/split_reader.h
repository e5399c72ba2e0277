// A split pattern while it is read from left to right.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "text/unicode/unicode_utf8.h"

namespace sextant {

class PatternReader {
 public:
  // `pattern` must be valid UTF-8.
  PatternReader(std::string_view pattern, std::string_view place) : pattern_(pattern), place_(place) {}

  bool done() const { return at_ == pattern_.size(); }
  size_t offset() const { return at_; }
  std::string_view rest() const { return pattern_.substr(at_); }
  bool sees(std::string_view text) const { return rest().starts_with(text); }
  bool sees_any_of(std::string_view characters) const {
    return !done() && characters.find(pattern_[at_]) != std::string_view::npos;
  }

  bool take(std::string_view text) {
    if (!sees(text)) return false;
    at_ += text.size();
    return true;
  }
  char32_t take_char() {
    Utf8Char c = decode_valid_utf8(pattern_.data() + at_);
    at_ += c.size;
    return c.code;
  }
  // The longest run of these characters, `most` of them at most.
  std::string_view take_run(std::string_view characters, size_t most = std::string_view::npos) {
    size_t count = std::min(rest().find_first_not_of(characters), rest().size());
    std::string_view run = rest().substr(0, std::min(count, most));
    at_ += run.size();
    return run;
  }

  // `what` names a construct that begins at byte `at`.
  [[noreturn]] void refuse(std::string_view what, size_t at) const {
    throw UserError({.place = std::string(place_),
                     .got = fmt::format("the split pattern uses {} at byte {}", what, at),
                     .expected =
                         "a construct known to match the same text in Oniguruma (the engine of HF `tokenizers`) "
                         "and in PCRE2"});
  }
  [[noreturn]] void broken(std::string_view what, size_t at) const {
    throw UserError({.place = std::string(place_),
                     .got = fmt::format("the split pattern has {} at byte {}", what, at),
                     .expected = "a regular expression"});
  }

 private:
  std::string_view pattern_, place_;
  size_t at_ = 0;
};

}  // namespace sextant
