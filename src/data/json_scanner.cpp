#include "data/json_scanner.h"

#include <array>

#include "text/unicode/unicode_utf8.h"

namespace sextant {

namespace {

// Bytes that a string may hold as they are, one at a time.
constexpr auto kPlain = [] {
  std::array<bool, 256> plain{};
  for (size_t c = 0x20; c < 0x80; ++c) plain[c] = c != '"' && c != '\\';
  return plain;
}();

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

}  // namespace

JsonScanner::JsonScanner(std::string_view text) : text_(text) {
  if (text.starts_with("\xEF\xBB\xBF")) at_ = 3;  // a byte order mark, which some editors put before the first line
}

char JsonScanner::peek() {
  while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  return at_ < text_.size() ? text_[at_] : '\0';
}

void JsonScanner::fail(std::string_view expected) const {
  throw JsonError(at_, std::string(expected));
}

std::string_view JsonScanner::next_kind() {
  switch (char c = peek()) {
    case '"':
      return "a string";
    case '{':
      return "an object";
    case '[':
      return "an array";
    case 't':
    case 'f':
      return "a boolean";
    case 'n':
      return "null";
    default:
      return c == '-' || is_digit(c) ? "a number" : "no value";
  }
}

bool JsonScanner::take_if(char symbol) {
  if (peek() != symbol) return false;
  ++at_;
  return true;
}

void JsonScanner::expect(char symbol, std::string_view expected) {
  if (!take_if(symbol)) fail(expected);
}

void JsonScanner::expect_end() {
  peek();
  if (at_ < text_.size()) fail("the end of the line");
}

void JsonScanner::read_over(std::string& scratch) {
  std::string open;  // the symbols that close what is open, innermost last
  do {
    char c = peek();
    if (c == '{' || c == '[') {
      ++at_;
      char closing = c == '{' ? '}' : ']';
      if (!take_if(closing)) {
        open += closing;
        if (closing == '}') read_key(scratch);
        continue;
      }
    } else {
      read_over_scalar(scratch);
    }
    while (!open.empty()) {
      if (take_if(',')) {
        if (open.back() == '}') read_key(scratch);
        break;
      }
      expect(open.back(), open.back() == '}' ? "',' or '}'" : "',' or ']'");
      open.pop_back();
    }
  } while (!open.empty());
}

void JsonScanner::read_over_scalar(std::string& scratch) {
  char c = peek();
  if (c == '"') return read_string(scratch);
  if (c == '-' || is_digit(c)) return read_number();
  for (std::string_view word : {"true", "false", "null"}) {
    if (!text_.substr(at_).starts_with(word)) continue;
    at_ += word.size();
    return;
  }
  fail("a value");
}

void JsonScanner::read_key(std::string& out) {
  read_string(out);
  expect(':', "':'");
}

void JsonScanner::read_number() {
  auto at = [&](char c) { return at_ < text_.size() && text_[at_] == c; };
  if (at('-')) ++at_;
  if (at('0')) {
    ++at_;
  } else {
    read_digits();
  }
  if (at('.')) {
    ++at_;
    read_digits();
  }
  if (at('e') || at('E')) {
    ++at_;
    if (at('+') || at('-')) ++at_;
    read_digits();
  }
}

void JsonScanner::read_digits() {
  if (at_ == text_.size() || !is_digit(text_[at_])) fail("a digit");
  while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
}

void JsonScanner::read_string(std::string& out) {
  expect('"', "a string");
  out.clear();
  for (;;) {
    size_t begin = at_;
    while (at_ < text_.size() && kPlain[static_cast<unsigned char>(text_[at_])]) ++at_;
    out.append(text_, begin, at_ - begin);
    if (at_ == text_.size()) fail("'\"' at the end of the string");
    char c = text_[at_];
    if (c == '"') break;
    if (c == '\\') {
      read_escape(out);
    } else {
      read_utf8(out);
    }
  }
  ++at_;
}

void JsonScanner::read_utf8(std::string& out) {
  if (static_cast<unsigned char>(text_[at_]) < 0x20) fail("an escape, not a control character");
  Utf8Step step = step_utf8(text_.substr(at_));
  if (step.state != Utf8State::valid) fail("UTF-8");
  out.append(text_, at_, step.size);
  at_ += step.size;
}

void JsonScanner::read_escape(std::string& out) {
  constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
  ++at_;
  char c = at_ < text_.size() ? text_[at_] : '\0';
  if (size_t known = kLetters.find(c); known != std::string_view::npos) {
    ++at_;
    out += kMeanings[known];
    return;
  }
  if (c != 'u') fail("an escape: one of \" \\ / b f n r t u after the backslash");
  ++at_;
  unsigned code = read_hex4();
  if (code >= 0xD800 && code < 0xDC00) {  // the first half of a pair that stands for one character
    if (!text_.substr(at_).starts_with("\\u")) fail("\\u and the second half of a surrogate pair");
    at_ += 2;
    unsigned second = read_hex4();
    if (second < 0xDC00 || second > 0xDFFF) fail("the second half of a surrogate pair");
    code = 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00);
  } else if (code >= 0xDC00 && code < 0xE000) {
    fail("the first half of a surrogate pair before this one");
  }
  append_utf8(code, out);
}

unsigned JsonScanner::read_hex4() {
  unsigned code = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    char c = at_ < text_.size() ? text_[at_] : '\0';
    if (is_digit(c)) {
      code = code * 16 + static_cast<unsigned>(c - '0');
    } else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) {
      code = code * 16 + static_cast<unsigned>((c & 7) + 9);
    } else {
      fail("four hexadecimal digits");
    }
  }
  return code;
}

}  // namespace sextant
