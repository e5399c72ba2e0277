#include "text/split/split_spell.h"

#include "text/split/pcre_categories.h"

namespace sextant {

namespace {

constexpr char32_t kFirstSurrogate = 0xD800, kLastSurrogate = 0xDFFF;

bool is_surrogate(char32_t c) {
  return c >= kFirstSurrogate && c <= kLastSurrogate;
}

// The inside of [...]. Surrogates cannot be written, and do not occur in text.
std::string items(const CodeSet& codes) {
  std::string out;
  for (CodeRange range : codes.ranges()) {
    if (is_surrogate(range.first)) range.first = kLastSurrogate + 1;
    if (is_surrogate(range.last)) range.last = kFirstSurrogate - 1;
    if (range.first > range.last) continue;
    out += fmt::format("\\x{{{:X}}}", static_cast<uint32_t>(range.first));
    if (range.last != range.first) out += fmt::format("-\\x{{{:X}}}", static_cast<uint32_t>(range.last));
  }
  return out;
}

std::string spelled_out(const CharClass& set) {
  std::string inside = items(set.codes);
  bool negated = set.negated;
  if (inside.empty()) {
    inside = items(CodeSet({0, kLastCode}));
    negated = !negated;
  }
  return fmt::format("[{}{}]", negated ? "^" : "", inside);
}

}  // namespace

std::string spell_char(char32_t code) {
  bool plain = (code >= '0' && code <= '9') || (code >= 'A' && code <= 'Z') || (code >= 'a' && code <= 'z');
  if (plain) return std::string(1, static_cast<char>(code));
  return fmt::format("\\x{{{:X}}}", static_cast<uint32_t>(code));
}

SpelledClass spell_class(const CharClass& set, Spelling spelling) {
  constexpr size_t kFew = 16;
  const CodeSet latin1({0, 0xFF});
  if (set.near.empty() || set.codes.ranges().size() <= kFew) return {spelled_out(set)};
  CodeSet theirs;
  std::string inside;
  for (const std::string& name : set.near) {
    theirs.add(pcre_category(name));
    inside += fmt::format("\\p{{{}}}", name);
  }
  CodeSet missing = set.codes.without(theirs), extra = theirs.without(set.codes);
  if (missing.ranges().size() + extra.ranges().size() > set.codes.ranges().size()) return {spelled_out(set)};
  std::string_view sign = set.negated ? "^" : "";
  if (spelling == Spelling::quick) {
    // PCRE2 keeps Latin-1 as a bitmap, so naming it costs nothing.
    CodeSet named = missing.both(latin1), wrong = missing.without(latin1).without(set.named);
    named.add(set.named);
    inside = items(named) + inside;
    wrong.add(extra);
    // A category by itself is quicker than a class of it.
    if (set.near.size() == 1 && inside.starts_with("\\p"))
      return {(set.negated ? "\\P" : "\\p") + inside.substr(2), wrong};
    return {fmt::format("[{}{}]", sign, inside), wrong};
  }
  inside = items(missing) + inside;
  std::string others = items(extra);
  if (others.empty()) return {fmt::format("[{}{}]", sign, inside)};
  if (set.negated) return {fmt::format("(?:[{}]|[^{}])", others, inside)};
  return {fmt::format("(?:(?![{}])[{}])", others, inside)};
}

}  // namespace sextant
