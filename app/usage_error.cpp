#include "app/usage_error.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/printable.h"
#include "config/nearest.h"
#include "config/schema.h"

namespace sextant {
namespace {

std::vector<std::string> names_of_subcommands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands(nullptr)) names.push_back(verb->get_name());
  return names;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& known) {
  std::vector<std::string_view> views(known.begin(), known.end());
  auto meant = nearest(name, views);
  return meant ? fmt::format("did you mean {}?", *meant) : "";
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
  std::vector<std::string> options, keys;
  for (const CLI::Option* option : verb.get_options())
    for (const std::string& known : option->get_lnames()) options.push_back("--" + known);
  std::string hint = did_you_mean(fmt::format("--{}", name), options);
  if (!hint.empty() || !verb.get_option_no_throw("overrides")) return hint;
  for (const Key& key : schema()) keys.emplace_back(key.name);
  std::vector<std::string_view> views(keys.begin(), keys.end());
  auto meant = nearest(name, views);
  return meant ? fmt::format("keys of the config are given as {}=VALUE", *meant) : "";
}

}  // namespace

void refuse_unknown_verb(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::vector<std::string> verbs = names_of_subcommands(app);
  if (std::ranges::count(verbs, argv[1]) > 0) return;
  std::string hint = did_you_mean(argv[1], verbs), option = fmt::format("--{}", argv[1]);
  for (const CLI::App* verb : app.get_subcommands(nullptr))
    if (verb->get_option_no_throw(option)) hint = fmt::format("did you mean sextant {} {}?", verb->get_name(), option);
  throw UserError({.place = "command line",
                   .got = fmt::format("no verb is called '{}'", argv[1]),
                   .expected = fmt::format("one of {}", fmt::join(verbs, ", ")),
                   .hint = hint});
}

const CLI::App& subcommand_named(const CLI::App& app, const std::string& name) {
  std::vector<std::string> known = names_of_subcommands(app);
  if (std::ranges::count(known, name) > 0) return *app.get_subcommand(name);
  if (known.empty())
    throw UserError({.place = app.get_name(), .got = fmt::format("has no subcommand '{}'", printable(name))});
  throw UserError({.place = "help",
                   .got = fmt::format("'{}'", printable(name)),
                   .expected = fmt::format("one of {}", fmt::join(known, ", ")),
                   .hint = did_you_mean(name, known)});
}

UserError usage_error(const CLI::App& app, const CLI::ParseError& error) {
  NamedVerb verb = named_verb(app);
  std::string place = verb.words.empty() ? "command line" : verb.words, expected;
  std::string got = printable(error.what());
  std::string hint = fmt::format("`sextant {}{}--help` lists what there is", verb.words, verb.words.empty() ? "" : " ");
  std::vector<std::string> subcommands = names_of_subcommands(*verb.app);
  if (dynamic_cast<const CLI::RequiredError*>(&error) && !subcommands.empty()) {
    got = verb.words.empty() ? "no verb is given" : "no subcommand is given";
    expected = fmt::format("one of {}", fmt::join(subcommands, ", "));
  }
  // CLI11 of a value that is none of a set: "--device: gpu not in {auto,cpu,cuda}".
  constexpr std::string_view kNotIn = " not in {";
  if (size_t set = got.find(kNotIn), colon = got.find(": ");
      dynamic_cast<const CLI::ValidationError*>(&error) && set != std::string::npos && colon < set) {
    size_t first = set + kNotIn.size();
    std::string value = got.substr(colon + 2, set - colon - 2);
    std::vector<std::string> known = CLI::detail::split(got.substr(first, got.rfind('}') - first), ',');
    // Short words are near to many: gpu is one letter from cpu, and means cuda.
    constexpr size_t kShort = 4;
    std::string meant = value.size() > kShort ? did_you_mean(value, known) : "";
    if (!meant.empty()) hint = meant;
    expected = fmt::format("one of {}", fmt::join(known, ", "));
    got = fmt::format("{} '{}'", got.substr(0, colon), value);
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error)) {
    std::vector<std::string> extras = app.remaining(true);
    std::string meant = extras.empty() ? "" : hint_for_argument(*verb.app, extras.front());
    if (!meant.empty()) hint = meant;
  }
  return UserError({.place = place, .got = got, .expected = expected, .hint = hint});
}

}  // namespace sextant
