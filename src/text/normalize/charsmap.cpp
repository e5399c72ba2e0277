#include "text/normalize/charsmap.h"

#include <cstring>

#include "base/error.h"
#include "text/normalize/graphemes.h"
#include "text/unicode/unicode_utf8.h"

namespace sextant {

namespace {

// A unit of the trie (darts-clone): the byte that leads to it, where its children are, and whether a value is there.
uint32_t label_of(uint32_t unit) {
  return unit & (uint32_t{1} << 31 | 0xFF);
}
uint32_t offset_of(uint32_t unit) {
  return (unit >> 10) << ((unit & (uint32_t{1} << 9)) >> 6);
}
bool has_value(uint32_t unit) {
  return unit >> 8 & 1;
}
uint32_t value_of(uint32_t unit) {
  return unit & ~(uint32_t{1} << 31);
}

uint32_t u32_at(std::string_view bytes, size_t at) {
  auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(bytes[at + i])); };
  return byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24;
}

[[noreturn]] void refuse(std::string_view place, std::string got) {
  throw UserError(
      {.place = std::string(place), .got = std::move(got), .expected = "a precompiled charsmap of sentencepiece"});
}

// Six bits, or -1.
int base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

std::string decode_base64(std::string_view text, std::string_view place) {
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (char c : text) {
    int digit = base64_digit(c);
    if (digit < 0) refuse(place, "not base64");
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> count & 0xFF);
  }
  return out;
}

}  // namespace

Charsmap::Charsmap(std::string_view bytes, std::string_view place) : begins_(256) {
  if (bytes.size() < 4) refuse(place, fmt::format("{} bytes", bytes.size()));
  size_t size = u32_at(bytes, 0);
  if (size > bytes.size() - 4 || size % 4 != 0 || size == 0)
    refuse(place, fmt::format("a trie of {} bytes in {}", size, bytes.size()));
  for (size_t at = 0; at < size; at += 4) units_.push_back(u32_at(bytes, 4 + at));
  texts_ = bytes.substr(4 + size);
  for (uint32_t byte = 1; byte < 256; ++byte) {
    uint32_t node = offset_of(units_[0]) ^ byte;
    begins_[byte] = node < units_.size() && label_of(units_[node]) == byte;
  }
  // Replacement texts are processed further as text, so they must be valid UTF-8.
  if (!is_valid_utf8(texts_)) refuse(place, "texts that are not UTF-8");
}

std::string_view Charsmap::content_at(uint32_t offset) const {
  std::string_view rest = std::string_view(texts_).substr(std::min<size_t>(offset, texts_.size()));
  // An offset into the middle of a character is a broken file; there is nothing there to put in.
  if (!rest.empty() && (static_cast<uint8_t>(rest[0]) & 0xC0) == 0x80) return {};
  return rest.substr(0, std::min(rest.find('\0'), rest.size()));
}

std::optional<Charsmap::Rule> Charsmap::rule_of(std::string_view text, Wanted wanted) const {
  std::optional<Rule> rule;
  uint32_t node = offset_of(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    auto byte = static_cast<uint8_t>(text[i]);
    node ^= byte;
    if (byte == 0 || node >= units_.size() || label_of(units_[node]) != byte) break;
    uint32_t unit = units_[node];
    node ^= offset_of(unit);
    if (!has_value(unit)) continue;
    if (node >= units_.size()) break;
    rule = Rule{i + 1, content_at(value_of(units_[node]))};
    if (wanted == Wanted::shortest) break;
  }
  return rule;
}

std::shared_ptr<const Charsmap> read_charsmap_base64(std::string_view text, std::string_view place) {
  return std::make_shared<const Charsmap>(decode_base64(text, place), place);
}

namespace {

class Precompiled : public Normalizer {
 public:
  explicit Precompiled(std::shared_ptr<const Charsmap> map) : map_(std::move(map)), quick_(kQuickCodes) {
    std::string character;
    for (char32_t code = 0; code < kQuickCodes; ++code) {
      character.clear();
      append_utf8(code, character);
      bool stays = !map_->may_begin(character[0]) || !map_->shortest(character);
      quick_[code] = {.stays_apart = stays && !may_join_next(code), .joins_previous = may_join_previous(code)};
    }
  }

  void apply(NormalText& text) const override {
    const std::string& old = text.text;
    std::string out;
    out.reserve(old.size() + old.size() / 8);
    for (size_t at = 0; at < old.size();) {
      size_t plain = end_of_plain(old, at);
      out.append(old, at, plain - at);
      at = plain;
      if (at == old.size()) break;
      size_t end = end_of_grapheme(old, at);
      size_t before = out.size();
      append_grapheme(std::string_view(old).substr(at, end - at), out);
      if (at == 0 && out.size() == before) text.from_start = false;
      at = end;
    }
    text.text = std::move(out);
  }

 private:
  static constexpr size_t kLongest = 5;  // bytes of a grapheme that is looked up as a whole

  static constexpr char32_t kQuickCodes = 0x10000;
  struct Quick {
    bool stays_apart =
        false;  // no rule for it alone, and a grapheme that begins with it goes on only if what comes says so
    bool joins_previous = false;  // what says so
  };

  // Past the characters that are graphemes by themselves and that no rule changes.
  size_t end_of_plain(const std::string& text, size_t at) const {
    if (at == text.size()) return at;
    for (Utf8Char c = decode_valid_utf8(text.data() + at); c.code < kQuickCodes && quick_[c.code].stays_apart;) {
      size_t next = at + c.size;
      if (next == text.size()) return next;
      c = decode_valid_utf8(text.data() + next);
      if (c.code < kQuickCodes ? quick_[c.code].joins_previous : may_join_previous(c.code)) break;
      at = next;
    }
    return at;
  }

  void append_grapheme(std::string_view grapheme, std::string& out) const {
    if (grapheme.size() <= kLongest) {
      if (std::optional<Charsmap::Rule> rule = map_->shortest(grapheme)) {
        out += rule->content;
        return;
      }
    }
    while (!grapheme.empty()) {
      std::string_view character = grapheme.substr(0, decode_valid_utf8(grapheme.data()).size);
      std::optional<Charsmap::Rule> rule = map_->shortest(character);
      out += rule ? rule->content : character;
      grapheme.remove_prefix(character.size());
    }
  }

  std::shared_ptr<const Charsmap> map_;
  std::vector<Quick> quick_;  // by code
};

}  // namespace

NormalizerPtr precompiled_normalizer(std::shared_ptr<const Charsmap> map) {
  return std::make_shared<Precompiled>(std::move(map));
}

}  // namespace sextant
