#include "app/usage_error.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "base/nearest.h"
#include "base/printable.h"
#include "config/schema.h"

namespace sextant {
namespace {

std::vector<std::string> names_of_subcommands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands(nullptr)) names.push_back(verb->get_name());
  return names;
}

// "--out", "--quiet", "-q".
std::vector<std::string> names_of_options(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

// The innermost verb that was named, with its words: "bench gemm".
struct NamedVerb {
  const CLI::App* app = nullptr;
  std::string words;
};
NamedVerb named_verb(const CLI::App& app) {
  NamedVerb named{&app, ""};
  while (!named.app->get_subcommands().empty()) {
    named.app = named.app->get_subcommands().front();
    named.words += (named.words.empty() ? "" : " ") + named.app->get_name();
  }
  return named;
}

// For an argument that the verb does not have: a similar option, or the config key that was given as an option.
std::string hint_for_argument(const CLI::App& verb, std::string_view argument) {
  if (!argument.starts_with("--")) return "";
  std::string_view name = argument.substr(2, argument.find('=') - 2);
  std::vector<std::string> keys;
  std::string hint = did_you_mean(fmt::format("--{}", name), names_of_options(verb));
  if (!hint.empty() || !verb.get_option_no_throw("overrides")) return hint;
  for (const Key& key : schema()) keys.emplace_back(key.name);
  std::vector<std::string_view> views(keys.begin(), keys.end());
  auto meant = nearest(name, views);
  return meant ? fmt::format("keys of the config are given as {}=VALUE", *meant) : "";
}

// What was meant by a word that is no verb: another verb, what stands below one (tokenize), or an option (search).
std::string hint_for_verb(const CLI::App& app, const std::string& word) {
  std::string option = "--" + word;
  std::map<std::string, std::string> above;  // of what stands below a verb, that verb
  for (const CLI::App* verb : app.get_subcommands(nullptr)) {
    for (const std::string& name : names_of_subcommands(*verb)) above.emplace(name, verb->get_name());
    if (verb->get_option_no_throw(option)) return fmt::format("did you mean sextant {} {}?", verb->get_name(), option);
  }
  std::string hint = above.contains(word) ? "" : did_you_mean(word, names_of_subcommands(app));
  if (!hint.empty()) return hint;
  std::vector<std::string_view> below;
  for (const auto& [name, verb] : above) below.push_back(name);
  auto meant = nearest(word, below);
  return meant ? fmt::format("did you mean sextant {} {}?", above.at(std::string(*meant)), *meant) : "";
}

void refuse_unknown_option(const CLI::App& app, const std::string& word) {
  std::vector<std::string> options = names_of_options(app);
  if (std::ranges::count(options, word.substr(0, word.find('='))) > 0) return;
  bool one_letter = !word.starts_with("--");
  std::string hint = one_letter ? "" : did_you_mean(word, options);
  for (const CLI::App* verb : app.get_subcommands(nullptr))
    if (hint.empty() && verb->get_option_no_throw(word))
      hint = "options of a verb stand behind it: sextant VERB " + word;
  throw UserError({.place = "command line",
                   .got = fmt::format("'{}' is not an option of sextant itself", printable(word)),
                   .expected = fmt::format("a verb, or one of {}", fmt::join(options, ", ")),
                   .hint = hint.empty() ? "`sextant --help` lists the verbs" : hint});
}

// The parts of a message of CLI11, "--ranks: Value 0 not in range 1 to 8", around `middle`.
struct RefusedValue {
  std::string option, value, allowed;
};
std::optional<RefusedValue> refused_value(const std::string& message, std::string_view middle) {
  size_t at = message.find(middle), colon = message.find(": ");
  if (at == message.npos || colon >= at) return std::nullopt;
  return RefusedValue{message.substr(0, colon), message.substr(colon + 2, at - colon - 2),
                      message.substr(at + middle.size())};
}

// "1e+06" and "1000000.000000" as "1000000".
std::string plain_number(const std::string& text) {
  double value = std::strtod(text.c_str(), nullptr);
  constexpr double kExact = 1e15;  // whole numbers that doubles hold
  if (std::abs(value) < kExact && value == std::floor(value)) return fmt::format("{}", static_cast<int64_t>(value));
  return text.find('.') == text.npos ? text : fmt::format("{}", value);
}

// CLI11 prints bounds of type double as "0.001000 to 3600.000000", and newer versions as "[0.001 - 3600]" or "1e+06".
std::string plain_bounds(const std::string& bounds) {
  static const std::regex numbers("^\\[?([^ ]+) (?:to|-) ([^\\] ]+)");
  std::smatch found;
  if (!std::regex_search(bounds, found, numbers)) return bounds;
  return fmt::format("{} to {}", plain_number(found[1]), plain_number(found[2]));
}

void explain_refused_value(const std::string& message, Complaint& complaint) {
  // Of a value that is none of a set: "--device: gpu not in {auto,cpu,cuda}".
  if (auto refused = refused_value(message, " not in {")) {
    std::vector<std::string> known = CLI::detail::split(refused->allowed.substr(0, refused->allowed.rfind('}')), ',');
    // Short words are near to many: gpu is one letter from cpu, and means cuda.
    constexpr size_t kShort = 4;
    std::string meant = refused->value.size() > kShort ? did_you_mean(refused->value, known) : "";
    if (!meant.empty()) complaint.hint = meant;
    complaint.expected = fmt::format("one of {}", fmt::join(known, ", "));
    complaint.got = fmt::format("{} '{}'", refused->option, refused->value);
  } else if (auto outside = refused_value(message, " not in range ")) {
    constexpr std::string_view kValue = "Value ";
    std::string value = outside->value.starts_with(kValue) ? outside->value.substr(kValue.size()) : outside->value;
    complaint.got = fmt::format("{} {}", outside->option, value);
    complaint.expected = fmt::format("a number from {}", plain_bounds(outside->allowed));
    complaint.hint = "";
  }
}

// "config is required": what it is says the option's own description.
void explain_missing(const CLI::App& verb, Complaint& complaint) {
  std::string name = complaint.got.substr(0, complaint.got.find(' '));
  if (const CLI::Option* option = verb.get_option_no_throw(name)) complaint.expected = option->get_description();
}

// "--out: 1 required TEXT missing" of an option at the end of the line.
void explain_missing_value(const CLI::App& verb, Complaint& complaint) {
  std::string name = complaint.got.substr(0, complaint.got.find(':'));
  const CLI::Option* option = verb.get_option_no_throw(name);
  if (!option || complaint.got.find(" missing") == std::string::npos) return;
  complaint.got = fmt::format("{} has no value", name);
  complaint.expected = option->get_description();
}

// What remains of a command line once the verb has read what it knows.
void explain_extras(const NamedVerb& verb, std::vector<std::string> extras, Complaint& complaint) {
  if (extras.empty()) return;
  std::ranges::reverse(extras);  // CLI11 has the last first
  auto option = std::ranges::find_if(extras, [](const std::string& word) { return word.starts_with("-"); });
  const std::string& first = option == extras.end() ? extras.front() : *option;
  complaint.got = option == extras.end() ? fmt::format("'{}' is one argument too many", printable(first))
                                         : fmt::format("'{}' is not an option", printable(first));
  std::string meant = hint_for_argument(*verb.app, first);
  if (!meant.empty()) complaint.hint = meant;
}

}  // namespace

void refuse_unknown_verb(const CLI::App& app, int argc, char** argv) {
  const CLI::App* at = &app;
  for (int i = 1; i < argc; ++i) {
    std::vector<std::string> known = names_of_subcommands(*at);
    std::string word = argv[i];
    if (known.empty() || (at != &app && word.starts_with('-'))) return;
    if (word.starts_with('-')) {
      refuse_unknown_option(app, word);
      continue;
    }
    if (std::ranges::count(known, word) > 0) {
      at = at->get_subcommand(word);
      continue;
    }
    throw UserError({.place = at == &app ? "command line" : at->get_name(),
                     .got = fmt::format("no {} is called '{}'", at == &app ? "verb" : "subcommand", printable(word)),
                     .expected = fmt::format("one of {}", fmt::join(known, ", ")),
                     .hint = at == &app ? hint_for_verb(app, word) : did_you_mean(word, known)});
  }
}

const CLI::App& subcommand_named(const CLI::App& app, const std::string& name) {
  std::vector<std::string> known = names_of_subcommands(app);
  if (std::ranges::count(known, name) > 0) return *app.get_subcommand(name);
  if (known.empty())
    throw UserError({.place = app.get_name(), .got = fmt::format("has no subcommand '{}'", printable(name))});
  throw UserError(
      {.place = "help",
       .got = fmt::format("no {} is called '{}'", app.get_parent() ? "subcommand" : "verb", printable(name)),
       .expected = fmt::format("one of {}", fmt::join(known, ", ")),
       .hint = app.get_parent() ? did_you_mean(name, known) : hint_for_verb(app, name)});
}

UserError usage_error(const CLI::App& app, const CLI::ParseError& error) {
  NamedVerb verb = named_verb(app);
  Complaint complaint{
      .place = verb.words.empty() ? "command line" : verb.words,
      .got = printable(error.what()),
      .expected = "",
      .hint = fmt::format("`sextant {}{}--help` lists what there is", verb.words, verb.words.empty() ? "" : " ")};
  std::vector<std::string> subcommands = names_of_subcommands(*verb.app);
  if (dynamic_cast<const CLI::RequiredError*>(&error) && !subcommands.empty()) {
    complaint.got = verb.words.empty() ? "no verb is given" : "no subcommand is given";
    complaint.expected = fmt::format("one of {}", fmt::join(subcommands, ", "));
  } else if (dynamic_cast<const CLI::RequiredError*>(&error)) {
    explain_missing(*verb.app, complaint);
  } else if (dynamic_cast<const CLI::ValidationError*>(&error)) {
    explain_refused_value(std::string(complaint.got), complaint);
  } else if (dynamic_cast<const CLI::ArgumentMismatch*>(&error)) {
    explain_missing_value(*verb.app, complaint);
  } else if (dynamic_cast<const CLI::ExtrasError*>(&error)) {
    explain_extras(verb, app.remaining(true), complaint);
  }
  return UserError(complaint);
}

}  // namespace sextant
