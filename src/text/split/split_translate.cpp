#include "text/split/split_translate.h"

#include <algorithm>
#include <charconv>

#include "text/split/split_class.h"
#include "text/split/split_spell.h"

namespace sextant {

namespace {

struct Options {
  bool ignore_case = false;
  bool dot_takes_newline = false;
};

// A translated part: `text` is one unit, which a quantifier may follow unless `fixed`.
struct Part {
  std::string text;
  bool may_be_empty = false;
  bool fixed = false;  // an anchor or look-around
};

constexpr int kMostNestedGroups = 50;
constexpr std::string_view kDigits = "0123456789";
constexpr int kMostRepeats = 65535;  // PCRE2's limit

struct Interval {
  int least = 0, most = -1;  // -1: no limit
  bool one_number = false;   // {n}
  size_t size = 0;           // bytes of it

  std::string text() const {
    if (one_number) return fmt::format("{{{}}}", least);
    return most < 0 ? fmt::format("{{{},}}", least) : fmt::format("{{{},{}}}", least, most);
  }
};

// {n}, {n,}, {n,m} or {,m} at the front of `text`. A { that begins none of these is a character.
std::optional<Interval> interval_at(std::string_view text) {
  PatternReader reader(text, "");
  if (!reader.take("{")) return std::nullopt;
  auto number = [](std::string_view digits) {
    int value = kMostRepeats + 1;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
  };
  std::string_view least = reader.take_run(kDigits);
  bool comma = reader.take(",");
  std::string_view most = comma ? reader.take_run(kDigits) : least;
  if (!reader.take("}") || (least.empty() && most.empty())) return std::nullopt;
  return Interval{.least = least.empty() ? 0 : number(least),
                  .most = most.empty() ? -1 : number(most),
                  .one_number = !comma,
                  .size = reader.offset()};
}

// The other cases of letters that stand side by side under (?i). Oniguruma also takes one character for several there
// (U+00DF for ss) and the other way round, PCRE2 does not, so patterns where that can happen are refused.
class CaseFolding {
 public:
  CaseFolding() {
    for (CaseExpansion& expansion : expansions_)
      std::transform(expansion.sequence, expansion.sequence + expansion.size(), expansion.sequence, first_case);
  }

  CharClass of(char32_t code, const PatternReader& reader, size_t at) {
    run_.push_back(first_case(code));
    CodeSet cases = with_other_cases(CodeSet({code, code}));
    for (const CaseExpansion& expansion : expansions_) {
      auto name = static_cast<uint32_t>(expansion.code);
      if (cases.contains(expansion.code))
        reader.refuse(fmt::format("(?i) on U+{:04X}, which equals several characters when case is ignored", name), at);
      if (run_ends_with(expansion))
        reader.refuse(fmt::format("(?i) on characters that together equal U+{:04X} when case is ignored", name), at);
    }
    return {cases};
  }

  CharClass of(CharClass set, const PatternReader& reader, size_t at) const {
    set.codes = with_other_cases(set.codes);
    for (const CaseExpansion& expansion : expansions_)
      if (!set.negated && set.codes.contains(expansion.code))
        reader.refuse(fmt::format("(?i) on [...] with U+{:04X}, which equals several characters when case is ignored",
                                  static_cast<uint32_t>(expansion.code)),
                      at);
    return set;
  }

  void end_run() { run_.clear(); }
  size_t run_size() const { return run_.size(); }

  // The letters since `begin` are repeated.
  void repeat_from(size_t begin, const PatternReader& reader, size_t at) {
    std::u32string again = run_.substr(std::min(begin, run_.size()));
    for (char32_t c : again) of(c, reader, at);
  }

 private:
  bool run_ends_with(const CaseExpansion& expansion) const {
    return run_.ends_with(std::u32string_view(expansion.sequence, expansion.size()));
  }

  std::vector<CaseExpansion> expansions_ = case_expansions();
  std::u32string run_;  // each letter as the first of its cases
};

class PatternTranslator {
 public:
  PatternTranslator(std::string_view pattern, std::string_view place, Spelling spelling)
      : reader_(pattern, place), spelling_(spelling) {}

  std::string translate() {
    Part whole = alternatives({}, 0);
    if (!reader_.done()) reader_.broken(") without (", reader_.offset());
    return std::move(whole.text);
  }

  const CodeSet& wrong_on() const { return wrong_on_; }

 private:
  // Up to the ) of the group around, or the end.
  Part alternatives(Options options, int depth) {
    if (depth > kMostNestedGroups) reader_.refuse("groups nested too deep", reader_.offset());
    Part whole = branch(options, depth);
    while (reader_.take("|")) {
      folding_.end_run();
      Part next = branch(options, depth);
      whole.text += "|" + next.text;
      whole.may_be_empty |= next.may_be_empty;
    }
    return whole;
  }

  Part branch(Options options, int depth) {
    Part whole{.may_be_empty = true};
    while (!reader_.done() && !reader_.sees_any_of("|)")) {
      size_t run = folding_.run_size();
      Part part = atom(options, depth);
      if (quantifier_follows()) part = quantified(std::move(part), run);
      whole.text += part.text;
      whole.may_be_empty &= part.may_be_empty;
    }
    return whole;
  }

  bool quantifier_follows() const { return reader_.sees_any_of("*+?") || interval_at(reader_.rest()); }

  Part quantified(Part part, size_t run) {
    size_t at = reader_.offset();
    if (part.fixed) reader_.refuse("a quantifier behind an anchor or look-around", at);
    std::optional<Interval> interval = interval_at(reader_.rest());
    bool once = !interval && reader_.sees("?");
    if (interval && (interval->least > kMostRepeats || interval->most > kMostRepeats ||
                     (interval->most >= 0 && interval->most < interval->least)))
      reader_.refuse("{n,m} with n above m or beyond 65535", at);
    if (part.may_be_empty && !once) reader_.refuse("a repetition of what may match nothing", at);
    if (!once) folding_.repeat_from(run, reader_, at);
    bool least_is_zero = interval ? interval->least == 0 : !reader_.sees("+");
    std::string sign = interval ? interval->text() : std::string(1, reader_.rest()[0]);
    reader_.take(reader_.rest().substr(0, interval ? interval->size : 1));
    part.may_be_empty |= least_is_zero;
    part.text += sign;
    if (reader_.sees("?") && interval && interval->one_number)  // a{2}? is (?:a{2})?
      part = {fmt::format("(?:{})?", part.text), true};
    else if (reader_.sees("?"))
      part.text += "?";
    else if (reader_.sees("+") && interval)  // a{1,2}+ is (?:a{1,2})+
      part.text = repeated_interval(part, at);
    else if (reader_.sees("+"))
      part.text += "+";
    if (reader_.sees_any_of("?+")) reader_.take_char();
    if (quantifier_follows()) reader_.refuse("a quantifier behind a quantifier", reader_.offset());
    return part;
  }

  std::string repeated_interval(const Part& part, size_t at) const {
    if (part.may_be_empty) reader_.refuse("a repetition of what may match nothing", at);
    return fmt::format("(?:{})+", part.text);
  }

  Part atom(Options options, int depth) {
    size_t at = reader_.offset();
    if (quantifier_follows()) reader_.broken("a quantifier with nothing before it", at);
    if (reader_.sees("(")) return group(options, depth);
    if (reader_.take("\\")) return escape(options, at);
    if (reader_.take("[")) {
      CharClass set = bracket_class(reader_);
      folding_.end_run();
      return {spell(options.ignore_case ? folding_.of(std::move(set), reader_, at) : set)};
    }
    if (reader_.take(".")) return set(options.dot_takes_newline ? CodeSet() : CodeSet({'\n', '\n'}), true);
    if (reader_.take("^")) return anchor("^");
    if (reader_.take("$")) return anchor("$");
    return character(reader_.take_char(), options, at);
  }

  Part character(char32_t code, Options options, size_t at) {
    if (options.ignore_case) return {spell(folding_.of(code, reader_, at))};
    folding_.end_run();
    return {spell_char(code)};
  }

  Part set(CodeSet codes, bool negated) {
    folding_.end_run();
    return {spell({.codes = std::move(codes), .negated = negated})};
  }

  Part anchor(std::string text) {
    folding_.end_run();
    return {std::move(text), true, true};
  }

  // Behind a backslash at `at`, outside [...].
  Part escape(Options options, size_t at) {
    if (std::optional<CharClass> found = escaped_set(reader_, ClassPlace::outside)) {
      folding_.end_run();
      return {spell(*found)};
    }
    if (std::optional<char32_t> code = escaped_char(reader_)) return character(*code, options, at);
    for (std::string_view same : {"A", "z", "Z"})
      if (reader_.take(same)) return anchor(fmt::format("\\{}", same));
    if (reader_.take("b")) return word_boundary("(?:(?<={0})(?!{0})|(?<!{0})(?={0}))");
    if (reader_.take("B")) return word_boundary("(?:(?<={0})(?={0})|(?<!{0})(?!{0}))");
    if (reader_.take("N")) return set(CodeSet({'\n', '\n'}), true);
    if (reader_.take("O")) return set({}, true);
    if (reader_.take("R")) {
      folding_.end_run();
      return {R"((?>\r\n|[\x{A}-\x{D}\x{85}\x{2028}\x{2029}]))"};
    }
    refuse_escape(reader_);
  }

  Part word_boundary(std::string_view form) {
    CharProperty word = word_outside_class();
    return anchor(fmt::format(fmt::runtime(form), spell({.codes = word.codes, .near = word.near})));
  }

  Part group(Options options, int depth) {
    size_t open = reader_.offset();
    for (std::string_view look : {"(?=", "(?!", "(?<=", "(?<!"})
      if (reader_.take(look)) {
        folding_.end_run();
        Part inside = close(alternatives(options, depth + 1), open);
        return anchor(fmt::format("{}{})", look, inside.text));
      }
    for (std::string_view same : {"(?:", "(?>"})
      if (reader_.take(same)) {
        Part inside = close(alternatives(options, depth + 1), open);
        return {fmt::format("{}{})", same, inside.text), inside.may_be_empty};
      }
    if (reader_.take("(?")) return options_or_name(options, depth, open);
    if (reader_.sees("(*")) reader_.refuse("(* (a callout to Oniguruma, a verb to PCRE2)", open);
    reader_.take("(");
    return plain_group(options, depth, open);
  }

  // Nothing refers to a group, so it need not capture.
  Part plain_group(Options options, int depth, size_t open) {
    Part inside = close(alternatives(options, depth + 1), open);
    return {fmt::format("(?:{})", inside.text), inside.may_be_empty};
  }

  // Behind (? : (?i-m:...), (?i-m) or (?<name>...).
  Part options_or_name(Options options, int depth, size_t open) {
    constexpr std::string_view kWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    if (reader_.take("<") && !reader_.take_run(kWord).empty() && reader_.take(">"))
      return plain_group(options, depth, open);
    bool on = true;
    for (; reader_.sees_any_of("im-"); reader_.take_char()) {
      if (reader_.sees("-")) on = false;
      if (reader_.sees("i")) options.ignore_case = on;
      if (reader_.sees("m")) options.dot_takes_newline = on;
    }
    bool some = reader_.offset() > open + 2;
    if (some && reader_.take(":")) return plain_group(options, depth, open);
    // Options alone hold up to the end of the group around, and its alternatives then belong to them: a(?i)b|c is
    // a(?i:b|c).
    if (some && reader_.take(")")) {
      Part rest = alternatives(options, depth + 1);
      return {fmt::format("(?:{})", rest.text), rest.may_be_empty};
    }
    reader_.refuse("a kind of group not known here", open);
  }

  Part close(Part inside, size_t open) {
    if (!reader_.take(")")) reader_.broken("( without )", open);
    return inside;
  }

  std::string spell(const CharClass& set) {
    SpelledClass spelled = spell_class(set, spelling_);
    wrong_on_.add(spelled.wrong_on);
    return std::move(spelled.text);
  }

  PatternReader reader_;
  Spelling spelling_;
  CaseFolding folding_;
  CodeSet wrong_on_;
};

}  // namespace

TranslatedPattern translate_pattern(std::string_view pattern, std::string_view place) {
  if (!is_valid_utf8(pattern)) PatternReader(pattern, place).broken("bytes that are not UTF-8", 0);
  PatternTranslator exact(pattern, place, Spelling::exact), quick(pattern, place, Spelling::quick);
  TranslatedPattern out{.exact = exact.translate(), .quick = quick.translate(), .quick_is_wrong_on = {}};
  out.quick_is_wrong_on = quick.wrong_on();
  return out;
}

}  // namespace sextant
