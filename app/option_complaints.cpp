#include "app/option_complaints.h"

#include <fmt/format.h>

#include <regex>
#include <string_view>

#include "app/option_values.h"
#include "base/nearest.h"
#include "base/printable.h"

namespace sextant {

namespace {

// An option that CLI11 names in a message, and what it takes.
struct NamedOption {
  const CLI::Option* option = nullptr;
  std::string name;
  OptionValue value;
};

NamedOption named_option(const CLI::App& verb, const std::string& verb_words, const std::string& name) {
  const CLI::Option* option = verb.get_option_no_throw(name);
  return {option, name, option ? value_of(*option, verb_words) : OptionValue{}};
}

// "--days DAYS: until the run must have ended".
std::string purpose(const NamedOption& named) {
  bool shown = !named.option->get_positional() && named.value.words.empty() && !named.value.placeholder.empty();
  return fmt::format("{}{}: {}", named.name, shown ? " " + named.value.placeholder : "",
                     named.option->get_description());
}

void refuse_value(const NamedOption& named, const std::string& value, Complaint& complaint) {
  bool word = !named.value.words.empty();
  complaint.got = value.empty()
                      ? fmt::format("{} has an empty value", named.name)
                      : fmt::format("{} {}{}{}", named.name, word ? "'" : "", printable(value), word ? "'" : "");
  complaint.expected = named.value.expected;
  complaint.hint = purpose(named);
  // Short words are near to many: gpu is one letter from cpu, and means cuda.
  constexpr size_t kShort = 4;
  std::string meant = value.size() > kShort ? did_you_mean(value, named.value.words) : "";
  if (!meant.empty()) complaint.hint = meant;
}

// The value in a message of a check, "Value 0 not in range 1 to 8" or "gpu not in {auto,cpu,cuda}"; where it says
// nothing of the kind, the last that was typed.
std::string refused_value(const CLI::Option& option, const std::string& message) {
  for (std::string_view middle : {" not in range ", " not in {"})
    if (size_t at = message.find(middle); at != message.npos) {
      std::string value = message.substr(0, at);
      constexpr std::string_view kValue = "Value ";
      return value.starts_with(kValue) ? value.substr(kValue.size()) : value;
    }
  std::string last = option.results().empty() ? "" : option.results().back();
  // A size is read to its unit: "x unit not recognized".
  if (size_t unit = message.find(" unit not recognized"); unit != message.npos) return last + message.substr(0, unit);
  return last;
}

// "--out: 1 required TEXT missing", "directories: At least 2 required but received 1".
void explain_count(const NamedOption& named, const std::string& message, Complaint& complaint) {
  static const std::regex counts(R"(At ([Ll]east|[Mm]ost) (\d+) required but received (\d+))");
  std::smatch found;
  complaint.hint = purpose(named);
  if (message.find(" missing") != message.npos) {
    complaint.got = fmt::format("{} has no value", named.name);
    complaint.expected = named.value.expected;
  } else if (std::regex_search(message, found, counts)) {
    complaint.got = fmt::format("{}: {} given", named.name, found[3].str());
    complaint.expected = fmt::format("at {} {}, each {}", found[1].str() == "Most" ? "most" : "least", found[2].str(),
                                     named.value.expected);
  } else if (message.find("flag override") != message.npos) {
    complaint.got = fmt::format("{} has a value", named.name);
    complaint.expected = fmt::format("{} alone", named.name);
  }
}

// "A excludes B" and "A requires B", of options.
void explain_pair(const CLI::App& verb, const std::string& verb_words, std::string_view relation,
                  const std::string& message, Complaint& complaint) {
  size_t at = message.find(relation);
  if (at == message.npos) return;
  std::string one = message.substr(0, at), other = message.substr(at + relation.size());
  bool excludes = relation == " excludes ";
  complaint.got = fmt::format("{} is given {} {}", one, excludes ? "with" : "without", other);
  complaint.expected = excludes ? "one of the two" : fmt::format("{} as well", other);
  if (NamedOption needed = named_option(verb, verb_words, other); !excludes && needed.option)
    complaint.hint = purpose(needed);
}

}  // namespace

void explain_option_error(const CLI::App& verb, const std::string& verb_words, const CLI::ParseError& error,
                          Complaint& complaint) {
  const std::string message = error.what();
  constexpr std::string_view kConversion = "Could not convert: ";
  if (dynamic_cast<const CLI::ExcludesError*>(&error))
    return explain_pair(verb, verb_words, " excludes ", message, complaint);
  if (dynamic_cast<const CLI::RequiresError*>(&error))
    return explain_pair(verb, verb_words, " requires ", message, complaint);
  if (dynamic_cast<const CLI::ConversionError*>(&error) && message.starts_with(kConversion)) {
    size_t equals = message.find(" = ");
    NamedOption named = named_option(verb, verb_words, message.substr(kConversion.size(), equals - kConversion.size()));
    if (named.option && equals != message.npos) refuse_value(named, message.substr(equals + 3), complaint);
    return;
  }
  bool missing = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  NamedOption named = named_option(verb, verb_words, message.substr(0, message.find(missing ? " is " : ":")));
  if (!named.option && dynamic_cast<const CLI::ArgumentMismatch*>(&error))  // "--json was given a …"
    named = named_option(verb, verb_words, "--" + message.substr(0, message.find(' ')));
  if (!named.option) return;
  if (missing) {
    complaint.expected = named.value.expected;
    complaint.hint = purpose(named);
  } else if (dynamic_cast<const CLI::ValidationError*>(&error)) {
    refuse_value(named, refused_value(*named.option, message.substr(named.name.size() + 2)), complaint);
    if (message.ends_with(kTooLarge)) complaint.got += kTooLarge;
  } else if (dynamic_cast<const CLI::ArgumentMismatch*>(&error)) {
    explain_count(named, message, complaint);
  }
}

}  // namespace sextant
