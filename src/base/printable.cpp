#include "base/printable.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>

namespace sextant {

namespace {

// Enough for any list of ours; an argument of 60 kB is shown by its ends.
constexpr size_t kMost = 2000, kHead = 1200, kTail = 600;

bool continues(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

struct Character {
  size_t bytes = 1;
  uint32_t code = 0;
  bool valid = false;
};

// The UTF-8 character at the beginning of the text, which is not empty.
Character first_of(std::string_view text) {
  auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {1, lead, true};
  size_t bytes = lead >= 0xF0 && lead < 0xF5   ? 4
                 : lead >= 0xE0 && lead < 0xF0 ? 3
                 : lead >= 0xC2 && lead < 0xE0 ? 2
                                               : 0;
  if (bytes == 0 || text.size() < bytes) return {};
  uint32_t code = lead & (0x7Fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if (!continues(text[i])) return {};
    code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3Fu);
  }
  bool shortest = bytes == 2 || code >= (bytes == 3 ? 0x800u : 0x10000u);
  bool surrogate = code >= 0xD800 && code < 0xE000;
  return shortest && !surrogate && code <= 0x10FFFF ? Character{bytes, code, true} : Character{};
}

bool is_control(uint32_t code) {
  bool lines = code == 0x2028 || code == 0x2029;
  bool directions =
      code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || lines || directions;
}

void append_escaped(std::string& out, std::string_view text, Newlines newlines) {
  while (!text.empty()) {
    Character c = first_of(text);
    bool plain = c.valid && (!is_control(c.code) || (c.code == '\n' && newlines == Newlines::kept));
    if (plain)
      out += text.substr(0, c.bytes);
    else if (c.valid && (c.code == '\n' || c.code == '\t' || c.code == '\r'))
      out += c.code == '\n' ? "\\n" : c.code == '\t' ? "\\t" : "\\r";
    else if (c.valid && c.code >= 0x80)
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", c.code);
    else
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(text[0]));
    text.remove_prefix(c.bytes);
  }
}

bool is_line_end_or_tab(std::string_view text) {
  return text[0] == '\n' || text[0] == '\t' || text.starts_with("\r\n");
}

}  // namespace

size_t first_unprintable(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    Character c = first_of(text.substr(at));
    if (!c.valid || (is_control(c.code) && !is_line_end_or_tab(text.substr(at)))) return at;
    at += c.bytes;
  }
  return std::string_view::npos;
}

std::string without_controls(std::string_view text, Newlines newlines) {
  std::string out;
  append_escaped(out, text, newlines);
  return out;
}

std::string escaped_json(std::string_view json) {
  std::string out;
  while (!json.empty()) {
    Character c = first_of(json);
    // Below 0x20 there are only the line ends and spaces between values.
    if (c.valid && c.code >= 0x7F && is_control(c.code))
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", c.code);
    else
      out += json.substr(0, c.bytes);
    json.remove_prefix(c.bytes);
  }
  return out;
}

std::string utf8_text(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    Character c = first_of(text);
    if (c.valid)
      out += text.substr(0, c.bytes);
    else
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(text[0]));
    text.remove_prefix(c.bytes);
  }
  return out;
}

std::string printable(std::string_view text, Newlines newlines) {
  std::string out;
  if (text.size() <= kMost) {
    append_escaped(out, text, newlines);
    return out;
  }
  // Characters are not cut.
  size_t head = kHead, tail = text.size() - kTail;
  while (head > kHead - 4 && continues(text[head])) --head;
  while (tail < text.size() - kTail + 4 && continues(text[tail])) ++tail;
  append_escaped(out, text.substr(0, head), newlines);
  out += fmt::format(" … (shortened: {} bytes) … ", text.size());
  append_escaped(out, text.substr(tail), newlines);
  return out;
}

}  // namespace sextant
