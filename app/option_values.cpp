#include "app/option_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <regex>
#include <span>
#include <string_view>

#include "app/verb.h"

namespace sextant {

namespace {

// Values of options that several verbs take. What one verb alone takes is in its VerbDef. A number that is not listed
// is N.
constexpr std::array kNumbers{
    ValueFormat{"RANKS", "ranks", "--ranks"},       ValueFormat{"SECONDS", "seconds", "--burn --seconds"},
    ValueFormat{"MINUTES", "minutes", "--minutes"}, ValueFormat{"DEVICES", "devices", "--devices"},
    ValueFormat{"DOLLARS", "dollars", "--price"},   ValueFormat{"POSITIONS", "positions", "--context"},
    ValueFormat{"THREADS", "threads", "--threads"}, ValueFormat{"SEED", "", "--seed"},
};

constexpr std::array kTexts{
    ValueFormat{"CONFIG", "the path of a run's TOML file", "config --config"},
    ValueFormat{"KEY=VALUE", "key=value, such as train.steps=50", "overrides --set"},
    ValueFormat{"LIMIT", "key=value,value, such as tp=4,8", "--only"},
    ValueFormat{"RUN", "the --out directory of a run", "run directories"},
    ValueFormat{"MODEL", "the path of a run's TOML file, or the name of a preset", "model"},
    ValueFormat{"DIR", "a directory", "--out directory"},
    ValueFormat{"FILE", "the name of a file to write", "--timeline --write --html --save"},
    ValueFormat{"FILE", "a hostfile", "--hosts"},
    ValueFormat{"FILE", "a CSV file", "--fit"},
    ValueFormat{"FILE", "a tokenizer.json", "--tokenizer"},
    ValueFormat{"PATH", "a file or a folder", "inputs"},
    ValueFormat{"FAULT", "a fault, KIND@STEP[:RANK], such as kill@30:1", "--inject"},
    ValueFormat{"MACHINE", "the name of a machine (sextant list machines) or a TOML file", "--machine"},
    ValueFormat{"SOFTWARE", "the name of a software profile (sextant list software)", "--software"},
    ValueFormat{"BALANCE", "balanced, a ratio of at least 1, or a metrics.jsonl", "--imbalance"},
    ValueFormat{"TOKENS", "a number of tokens, such as 300M or 1.4T", "--tokens"},
    ValueFormat{"KEY", "a JSON key or the name of a column", "--text-key"},
    ValueFormat{"VERB", "the name of a verb", "verb"},
};

bool lists(std::string_view options, const std::string& name) {
  for (size_t at = options.find(name); at != options.npos; at = options.find(name, at + 1)) {
    size_t end = at + name.size();
    if ((at == 0 || options[at - 1] == ' ') && (end == options.size() || options[end] == ' ')) return true;
  }
  return false;
}

const ValueFormat* format_in(std::span<const ValueFormat> formats, const std::string& option) {
  auto found = std::ranges::find_if(formats, [&](const ValueFormat& format) { return lists(format.options, option); });
  return found == formats.end() ? nullptr : &*found;
}

const ValueFormat* format_of(std::span<const ValueFormat> shared, const std::string& option,
                             const std::string& verb_words) {
  const VerbDef* verb = find_verb(verb_words);
  const ValueFormat* own = verb ? format_in(verb->values, option) : nullptr;
  return own ? own : format_in(shared, option);
}

// "1e+06" and "1000000.000000" as "1000000", "1e-06" as "0.000001".
std::string plain_number(const std::string& text) {
  double value = std::strtod(text.c_str(), nullptr);
  constexpr double kExact = 1e15;  // whole numbers that doubles hold
  if (std::abs(value) < kExact && value == std::floor(value)) return fmt::format("{}", static_cast<int64_t>(value));
  if (text.find_first_of(".e") == text.npos) return text;
  std::string decimals = fmt::format("{:.6f}", value);
  return decimals.substr(0, decimals.find_last_not_of('0') + 1);
}

// Like lists of words in CLI11: "{auto,cpu,cuda}".
std::vector<std::string> words_in(const std::string& described) {
  if (!described.starts_with('{')) return {};
  return CLI::detail::split(described.substr(1, described.find('}') - 1), ',');
}

OptionValue number_value(const CLI::Option& option, const std::string& verb, const std::string& type,
                         const std::string& described) {
  const ValueFormat* kind = format_of(kNumbers, option.get_name(), verb);
  OptionValue value{.placeholder = kind ? std::string(kind->placeholder) : "N",
                    .expected = type.starts_with("FLOAT") ? "a number" : "a whole number",
                    .bounds = bounds_in_words(described),
                    .words = {}};
  if (kind && !kind->phrase.empty()) value.expected += fmt::format(" of {}", kind->phrase);
  if (!value.bounds.empty()) value.expected += " " + value.bounds;
  return value;
}

}  // namespace

std::string bounds_in_words(const std::string& bounds) {
  constexpr double kNoLimit = 1e9;  // a bound that nobody reaches by hand
  if (bounds.starts_with("POSITIVE")) return "above 0";
  static const std::regex ends(R"((-?[0-9.]+(?:e[+-]?[0-9]+)?) (?:to|-) (-?[0-9.]+(?:e[+-]?[0-9]+)?))");
  std::smatch found;
  if (!std::regex_search(bounds, found, ends)) return "";
  if (std::strtod(found[2].str().c_str(), nullptr) >= kNoLimit)
    return fmt::format("of at least {}", plain_number(found[1]));
  return fmt::format("from {} to {}", plain_number(found[1]), plain_number(found[2]));
}

OptionValue value_of(const CLI::Option& option, const std::string& verb_words) {
  if (option.get_expected_max() == 0) return {};
  // CLI11 describes what an option takes as "TEXT:{auto,cpu,cuda}" or "INT:INT in [1 - 1024]".
  std::string described = option.get_type_name();
  size_t colon = described.find(':');
  std::string type = described.substr(0, colon), rest = colon == described.npos ? "" : described.substr(colon + 1);
  if (std::vector<std::string> words = words_in(rest); !words.empty())
    return {.placeholder = fmt::format("{}", fmt::join(words, "|")),
            .expected = fmt::format("one of {}", fmt::join(words, ", ")),
            .bounds = "",
            .words = words};
  if (type.starts_with("INT") || type.starts_with("UINT") || type.starts_with("FLOAT"))
    return number_value(option, verb_words, type, rest);
  const ValueFormat* kind = format_of(kTexts, option.get_name(), verb_words);
  if (!kind) return {.placeholder = "VALUE", .expected = "a value", .bounds = "", .words = {}};
  return {
      .placeholder = std::string(kind->placeholder), .expected = std::string(kind->phrase), .bounds = "", .words = {}};
}

}  // namespace sextant
