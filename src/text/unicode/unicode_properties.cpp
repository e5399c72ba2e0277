#include "text/unicode/unicode_properties.h"

#include <algorithm>
#include <iterator>

namespace sextant {

namespace {

// Without Cs, the surrogates, which do not occur in text.
constexpr std::string_view kCategoryNames[] = {"Cn", "Cc", "Cf", "Co", "Ll", "Lm", "Lo", "Lt", "Lu", "Mc",
                                               "Me", "Mn", "Nd", "Nl", "No", "Pc", "Pd", "Pe", "Pf", "Pi",
                                               "Po", "Ps", "Sc", "Sk", "Sm", "So", "Zl", "Zp", "Zs"};

struct CategoryRun {
  char32_t first, last;
  char category[3];
};

struct CaseClass {
  char32_t codes[4];  // zero after its end
};

#include "text/unicode/unicode_properties.inc"

constexpr CodeRange kAscii[] = {{0, 0x7F}};
constexpr CodeRange kHexDigits[] = {{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
constexpr CodeRange kTab[] = {{'\t', '\t'}};
constexpr CodeRange kLatin1Word[] = {{0xB2, 0xB3}, {0xB9, 0xB9}, {0xBC, 0xBE}};

// A general category by its name of one or two letters.
CodeSet category(std::string_view name) {
  std::vector<CodeRange> ranges, assigned{{0xD800, 0xDFFF}};
  for (const CategoryRun& run : kCategories) {
    assigned.push_back({run.first, run.last});
    if (std::string_view(run.category).starts_with(name)) ranges.push_back({run.first, run.last});
  }
  CodeSet out(ranges);
  if (std::string_view("Cn").starts_with(name)) out.add(CodeSet(assigned).inverted());
  return out;
}

CharProperty categories(std::vector<std::string> names, std::span<const CodeRange> more = {}) {
  CharProperty out{.codes = CodeSet(more), .near = std::move(names)};
  for (const std::string& name : out.near) out.codes.add(category(name));
  return out;
}

CharProperty only(std::span<const CodeRange> ranges) {
  return {.codes = CodeSet(ranges)};
}

CharProperty word_inside_class() {
  return categories({"L", "M", "Nl", "Nd", "Pc"}, kOtherAlphabetic);
}

struct LongName {
  std::string_view name, category;
};
constexpr LongName kLongNames[] = {{"other", "C"},
                                   {"control", "Cc"},
                                   {"format", "Cf"},
                                   {"unassigned", "Cn"},
                                   {"privateuse", "Co"},
                                   {"letter", "L"},
                                   {"lowercaseletter", "Ll"},
                                   {"modifierletter", "Lm"},
                                   {"otherletter", "Lo"},
                                   {"titlecaseletter", "Lt"},
                                   {"uppercaseletter", "Lu"},
                                   {"mark", "M"},
                                   {"combiningmark", "M"},
                                   {"spacingmark", "Mc"},
                                   {"enclosingmark", "Me"},
                                   {"nonspacingmark", "Mn"},
                                   {"number", "N"},
                                   {"decimalnumber", "Nd"},
                                   {"letternumber", "Nl"},
                                   {"othernumber", "No"},
                                   {"punctuation", "P"},
                                   {"punct", "P"},
                                   {"connectorpunctuation", "Pc"},
                                   {"dashpunctuation", "Pd"},
                                   {"closepunctuation", "Pe"},
                                   {"finalpunctuation", "Pf"},
                                   {"initialpunctuation", "Pi"},
                                   {"otherpunctuation", "Po"},
                                   {"openpunctuation", "Ps"},
                                   {"symbol", "S"},
                                   {"currencysymbol", "Sc"},
                                   {"modifiersymbol", "Sk"},
                                   {"mathsymbol", "Sm"},
                                   {"othersymbol", "So"},
                                   {"separator", "Z"},
                                   {"lineseparator", "Zl"},
                                   {"paragraphseparator", "Zp"},
                                   {"spaceseparator", "Zs"}};

struct Script {
  std::string_view name, short_name;
  std::span<const CodeRange> ranges;
};
constexpr Script kScripts[] = {{"arabic", "arab", kArabic},
                               {"armenian", "armn", kArmenian},
                               {"bengali", "beng", kBengali},
                               {"bopomofo", "bopo", kBopomofo},
                               {"common", "zyyy", kCommon},
                               {"cyrillic", "cyrl", kCyrillic},
                               {"devanagari", "deva", kDevanagari},
                               {"ethiopic", "ethi", kEthiopic},
                               {"georgian", "geor", kGeorgian},
                               {"greek", "grek", kGreek},
                               {"gujarati", "gujr", kGujarati},
                               {"gurmukhi", "guru", kGurmukhi},
                               {"han", "hani", kHan},
                               {"hangul", "hang", kHangul},
                               {"hebrew", "hebr", kHebrew},
                               {"hiragana", "hira", kHiragana},
                               {"inherited", "zinh", kInherited},
                               {"kannada", "knda", kKannada},
                               {"katakana", "kana", kKatakana},
                               {"khmer", "khmr", kKhmer},
                               {"lao", "laoo", kLao},
                               {"latin", "latn", kLatin},
                               {"malayalam", "mlym", kMalayalam},
                               {"mongolian", "mong", kMongolian},
                               {"myanmar", "mymr", kMyanmar},
                               {"oriya", "orya", kOriya},
                               {"sinhala", "sinh", kSinhala},
                               {"tamil", "taml", kTamil},
                               {"telugu", "telu", kTelugu},
                               {"thai", "thai", kThai},
                               {"tibetan", "tibt", kTibetan},
                               {"yi", "yiii", kYi}};

// Names are compared without what does not count in them.
std::string plain(std::string_view name) {
  std::string out;
  for (char c : name)
    if (c != ' ' && c != '_' && c != '-') out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

std::optional<CharProperty> category_named(std::string_view name) {
  if (name == "lc" || name == "casedletter") return categories({"Ll", "Lt", "Lu"});
  for (const LongName& known : kLongNames)
    if (known.name == name) return categories({std::string(known.category)});
  if (name.empty() || name.size() > 2) return std::nullopt;
  std::string spelled(name);
  spelled[0] = static_cast<char>(spelled[0] - 'a' + 'A');
  for (std::string_view known : kCategoryNames)
    if (known == spelled || known.substr(0, 1) == spelled) return categories({spelled});
  return std::nullopt;
}

}  // namespace

std::optional<CharProperty> posix_bracket(std::string_view name) {
  if (name == "alnum") return categories({"L", "Nl", "Nd"}, kOtherAlphabetic);
  if (name == "alpha") return categories({"L", "Nl"}, kOtherAlphabetic);
  if (name == "ascii") return only(kAscii);
  if (name == "blank") return categories({"Zs"}, kTab);
  if (name == "cntrl") return categories({"Cc"});
  if (name == "digit") return categories({"Nd"});
  if (name == "graph") return categories({"Cf", "Co", "L", "M", "N", "P", "S"});
  if (name == "lower") return categories({"Ll"}, kOtherLowercase);
  if (name == "print") return categories({"Cf", "Co", "L", "M", "N", "P", "S", "Zs"});
  if (name == "punct") return categories({"P", "S"});
  if (name == "space") return CharProperty{.codes = white_space(), .near = {"Z"}};
  if (name == "upper") return categories({"Lu"}, kOtherUppercase);
  if (name == "xdigit") return only(kHexDigits);
  if (name == "word") return word_inside_class();
  return std::nullopt;
}

std::optional<CharProperty> unicode_property(std::string_view given) {
  std::string name = plain(given);
  if (std::optional<CharProperty> found = category_named(name)) return found;
  if (name == "any") return CharProperty{.codes = CodeSet({0, kLastCode})};
  if (name == "assigned") return CharProperty{.codes = category("Cn").inverted()};
  if (name == "alphabetic") return posix_bracket("alpha");
  if (name == "lowercase") return posix_bracket("lower");
  if (name == "uppercase") return posix_bracket("upper");
  if (name == "whitespace" || name == "wspace") return posix_bracket("space");
  for (const Script& script : kScripts)
    if (name == script.name || name == script.short_name) return only(script.ranges);
  return posix_bracket(name);
}

CodeSet white_space() {
  return CodeSet(kSpaces);
}

CharProperty word_outside_class() {
  CharProperty out = word_inside_class();
  out.codes.add(CodeSet(kLatin1Word));
  return out;
}

std::vector<std::string> leaf_categories() {
  return {std::begin(kCategoryNames), std::end(kCategoryNames)};
}

char32_t first_case(char32_t code) {
  for (const CaseClass& cases : kCaseClasses)
    if (std::find(std::begin(cases.codes), std::end(cases.codes), code) != std::end(cases.codes))
      return code == 0 ? 0 : cases.codes[0];
  return code;
}

CodeSet with_other_cases(const CodeSet& codes) {
  std::vector<CodeRange> all(codes.ranges().begin(), codes.ranges().end());
  for (const CaseClass& cases : kCaseClasses) {
    auto end = std::find(std::begin(cases.codes), std::end(cases.codes), U'\0');
    if (std::any_of(std::begin(cases.codes), end, [&](char32_t c) { return codes.contains(c); }))
      std::for_each(std::begin(cases.codes), end, [&](char32_t c) { all.push_back({c, c}); });
  }
  return CodeSet(all);
}

std::vector<CaseExpansion> case_expansions() {
  return {std::begin(kCaseExpansions), std::end(kCaseExpansions)};
}

}  // namespace sextant
