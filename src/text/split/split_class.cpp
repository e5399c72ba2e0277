#include "text/split/split_class.h"

#include <charconv>

namespace sextant {

namespace {

constexpr std::string_view kHex = "0123456789abcdefABCDEF";
constexpr int kMostNestedClasses = 50;

char32_t code_of_hex(PatternReader& reader, std::string_view digits, size_t at) {
  uint32_t code = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
  if (error != std::errc() || code > kLastCode || (code >= 0xD800 && code < 0xE000))
    reader.refuse(fmt::format("{} (not a character)", digits), at);
  return code;
}

// Behind \x: one or two digits, or any number of them in braces.
char32_t hex_char(PatternReader& reader) {
  size_t at = reader.offset() - 2;
  bool braced = reader.take("{");
  std::string_view digits = reader.take_run(kHex, braced ? 8 : 2);
  if (digits.empty() || (braced && !reader.take("}"))) reader.refuse(R"(\x without hexadecimal digits)", at);
  char32_t code = code_of_hex(reader, digits, at);
  if (!braced && code > 0x7F) reader.refuse(fmt::format("\\x{} (a byte of a character)", digits), at);
  return code;
}

CharClass class_of(CharProperty property, bool negated) {
  CodeSet named = property.near.empty() ? property.codes : CodeSet();
  return {std::move(property.codes), std::move(property.near), std::move(named), negated};
}

// Behind \p or \P.
CharClass property(PatternReader& reader, bool negated, ClassPlace where) {
  size_t at = reader.offset() - 2;
  if (!reader.take("{")) reader.refuse(R"(\p without {...})", at);
  size_t end = reader.rest().find('}');
  if (end == std::string_view::npos) reader.broken(R"(\p{ without })", at);
  std::string_view name = reader.rest().substr(0, end);
  reader.take(name);
  reader.take("}");
  if (name.starts_with('^')) {
    negated = !negated;
    name.remove_prefix(1);
  }
  std::optional<CharProperty> found = unicode_property(name);
  if (!found) reader.refuse(fmt::format("the property \\p{{{}}}", name), at);
  if (where == ClassPlace::outside && found->codes == posix_bracket("word")->codes) found = word_outside_class();
  return class_of(*std::move(found), negated);
}

// A set as part of another: a negation is carried out at once.
void unite(CharClass& whole, const CharClass& part) {
  if (part.negated) {
    whole.codes.add(part.codes.inverted());
    whole.named.add(part.codes.inverted());
    return;
  }
  whole.codes.add(part.codes);
  whole.named.add(part.named);
  whole.near.insert(whole.near.end(), part.near.begin(), part.near.end());
}

class ClassParser {
 public:
  explicit ClassParser(PatternReader& reader) : reader_(reader) {}

  // Behind [ : all up to its ], of `depth` classes around.
  CharClass parse(int depth) {
    size_t open = reader_.offset() - 1;
    if (depth > kMostNestedClasses) reader_.refuse("classes nested too deep", open);
    bool negated = reader_.take("^");
    CharClass whole = operand(depth, open, depth == 0);
    while (reader_.take("&&")) {
      CodeSet common = whole.codes.both(operand(depth, open, false).codes);
      whole = {.codes = common, .named = common};
    }
    if (!reader_.take("]")) reader_.broken("[ without ]", open);
    whole.negated = negated;
    return whole;
  }

 private:
  // The items up to ] or &&.
  CharClass operand(int depth, size_t open, bool bracket_may_lead) {
    CharClass whole;
    size_t begin = reader_.offset();
    if (bracket_may_lead && reader_.sees("]")) literal_or_range(whole, reader_.take_char());
    while (!reader_.done() && !reader_.sees("]") && !reader_.sees("&&")) item(whole, depth, reader_.offset() == begin);
    if (reader_.done()) reader_.broken("[ without ]", open);
    if (reader_.offset() == begin) reader_.refuse("an empty class or operand of && in [...]", open);
    return whole;
  }

  void item(CharClass& whole, int depth, bool first) {
    size_t at = reader_.offset();
    if (reader_.sees("[:")) return unite(whole, posix(at));
    if (reader_.take("[")) return unite(whole, parse(depth + 1));
    if (reader_.take("\\")) {
      if (std::optional<CharClass> found = escaped_set(reader_, ClassPlace::inside)) return unite(whole, *found);
      return literal_or_range(whole, char_behind_backslash());
    }
    if (reader_.sees("-") && !first && !reader_.sees("-]"))
      reader_.refuse(R"(- between items of [...] (write \-))", at);
    literal_or_range(whole, reader_.take_char());
  }

  char32_t char_behind_backslash() {
    if (reader_.take("b")) return 0x08;
    std::optional<char32_t> c = escaped_char(reader_);
    if (!c) refuse_escape(reader_);
    return *c;
  }

  void literal_or_range(CharClass& whole, char32_t first) {
    size_t at = reader_.offset();
    if (!reader_.sees("-") || reader_.sees("-]")) return add(whole, {first, first});
    reader_.take("-");
    if (reader_.done() || reader_.sees_any_of("[-") || reader_.sees("&&"))
      reader_.refuse(R"(- between items of [...] (write \-))", at);
    bool escaped = reader_.take("\\");
    if (escaped && reader_.done()) reader_.broken("a \\ with nothing behind it", at);
    char32_t last = escaped ? char_behind_backslash() : reader_.take_char();
    if (last < first) reader_.broken("a range in [...] whose end comes before its begin", at);
    add(whole, {first, last});
  }

  static void add(CharClass& whole, CodeRange range) {
    whole.codes.add(range);
    whole.named.add(range);
  }

  CharClass posix(size_t at) {
    reader_.take("[:");
    bool negated = reader_.take("^");
    std::string_view name = reader_.take_run("abcdefghijklmnopqrstuvwxyz");
    std::optional<CharProperty> found = posix_bracket(name);
    if (!found || !reader_.take(":]")) reader_.refuse("[: without the name of a POSIX bracket and :]", at);
    return class_of(*std::move(found), negated);
  }

  PatternReader& reader_;
};

}  // namespace

std::optional<char32_t> escaped_char(PatternReader& reader) {
  if (reader.done()) reader.broken("a \\ with nothing behind it", reader.offset() - 1);
  constexpr std::string_view kLetters = "tnrfvae";
  constexpr std::string_view kCodes = "\t\n\r\f\v\a\x1B";
  char c = reader.rest()[0];
  if (size_t i = kLetters.find(c); i != std::string_view::npos) {
    reader.take_char();
    return static_cast<char32_t>(kCodes[i]);
  }
  if (reader.take("x")) return hex_char(reader);
  if (reader.take("u")) {
    size_t at = reader.offset() - 2;
    std::string_view digits = reader.take_run(kHex, 4);
    if (digits.size() != 4) reader.refuse(R"(\u without four hexadecimal digits)", at);
    return code_of_hex(reader, digits, at);
  }
  bool letter_or_digit = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  if (letter_or_digit) return std::nullopt;
  return reader.take_char();
}

std::optional<CharClass> escaped_set(PatternReader& reader, ClassPlace where) {
  if (!reader.sees_any_of("dDwWsShHpP")) return std::nullopt;
  auto letter = static_cast<char>(reader.take_char());
  bool negated = letter >= 'A' && letter <= 'Z';
  auto set = [&](CharProperty found) { return class_of(std::move(found), negated); };
  switch (letter | 0x20) {
    case 'd':
      return set(*posix_bracket("digit"));
    case 's':
      return set(*posix_bracket("space"));
    case 'h':
      return set(*posix_bracket("xdigit"));
    case 'w':
      return set(where == ClassPlace::outside ? word_outside_class() : *posix_bracket("word"));
    default:
      return property(reader, negated, where);
  }
}

void refuse_escape(const PatternReader& reader) {
  size_t at = reader.offset() - 1;
  auto named = [&](std::string_view why) { reader.refuse(fmt::format("\\{} ({})", reader.rest()[0], why), at); };
  switch (reader.rest()[0]) {
    case 'X':
    case 'y':
    case 'Y':
      named("text segments, whose rules differ between Unicode versions");
      break;
    case 'k':
      named("a back-reference");
      break;
    case 'g':
      named("a call of a group");
      break;
    case 'G':
      named("where the search began");
      break;
    case 'K':
      named("a new begin of the match");
      break;
    case 'c':
    case 'C':
    case 'M':
      named("a control or meta character");
      break;
    default:
      bool digit = reader.sees_any_of("0123456789");
      named(digit ? "a back-reference or an octal number" : "an escape without a meaning known here");
  }
  __builtin_unreachable();
}

CharClass bracket_class(PatternReader& reader) {
  return ClassParser(reader).parse(0);
}

}  // namespace sextant
