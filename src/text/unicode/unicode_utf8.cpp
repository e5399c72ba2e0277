#include "text/unicode/unicode_utf8.h"

#include <cstring>

namespace sextant {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct ByteRange {
  uint8_t low, high;
  bool holds(uint8_t byte) const { return low <= byte && byte <= high; }
};

// The second byte may not continue an overlong form, a surrogate, or a code point above U+10FFFF
// (the Unicode Standard, table 3-7).
ByteRange second_byte_range(uint8_t first) {
  switch (first) {
    case 0xE0:
      return {0xA0, 0xBF};
    case 0xED:
      return {0x80, 0x9F};
    case 0xF0:
      return {0x90, 0xBF};
    case 0xF4:
      return {0x80, 0x8F};
    default:
      return {0x80, 0xBF};
  }
}

// Bytes of valid UTF-8 at the front.
size_t valid_prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    at += ascii_prefix(text.substr(at));
    while (at < text.size() && static_cast<uint8_t>(text[at]) >= 0x80) {
      Utf8Step step = step_utf8(text.substr(at));
      if (step.state != Utf8State::valid) return at;
      at += step.size;
    }
  }
  return at;
}

}  // namespace

size_t ascii_prefix(std::string_view text) {
  size_t at = 0;
  for (uint64_t word; at + sizeof word <= text.size(); at += sizeof word) {
    std::memcpy(&word, text.data() + at, sizeof word);
    if (word & 0x8080808080808080) break;
  }
  while (at < text.size() && static_cast<uint8_t>(text[at]) < 0x80) ++at;
  return at;
}

void append_utf8(char32_t code, std::string& out) {
  auto put = [&](char32_t byte) { out += static_cast<char>(byte); };
  auto put_tail = [&](int shift) { put(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put_tail(6);
  } else {
    put(0xF0 | code >> 18);
    put_tail(12);
    put_tail(6);
  }
  put_tail(0);
}

Utf8Step step_utf8(std::string_view text) {
  auto first = static_cast<uint8_t>(text[0]);
  if (first < 0x80) return {Utf8State::valid, 1};
  if (first < 0xC2 || first > 0xF4) return {Utf8State::broken, 1};
  uint32_t size = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  ByteRange allowed = second_byte_range(first);
  for (uint32_t i = 1; i < size; ++i) {
    if (i == text.size()) return {Utf8State::cut_short, i};
    if (!allowed.holds(static_cast<uint8_t>(text[i]))) return {Utf8State::broken, i};
    allowed = {0x80, 0xBF};
  }
  return {Utf8State::valid, size};
}

bool is_valid_utf8(std::string_view text) {
  return valid_prefix(text) == text.size();
}

void append_mended_utf8(std::string_view text, std::string& out) {
  while (!text.empty()) {
    size_t good = valid_prefix(text);
    out += text.substr(0, good);
    text.remove_prefix(good);
    if (text.empty()) return;
    out += kReplacement;
    text.remove_prefix(step_utf8(text).size);
  }
}

}  // namespace sextant
