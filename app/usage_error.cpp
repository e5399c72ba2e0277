#include "app/usage_error.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "app/option_complaints.h"
#include "app/verb.h"
#include "base/nearest.h"
#include "base/printable.h"
#include "config/foreign_names.h"
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
    if (option->get_group().empty()) continue;  // hidden
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

// Options of earlier versions, of verbs that have the new one.
struct Renamed {
  std::string_view before, now;
};
constexpr std::array kRenamedOptions{Renamed{"--report", "--html"}, Renamed{"--export", "--html"}};

// Verbs of other programs, and of earlier versions.
constexpr std::array kOtherVerbs{Renamed{"pretrain", "train"},
                                 Renamed{"finetune", "train"},
                                 Renamed{"fine-tune", "train"},
                                 Renamed{"fit", "train"},
                                 Renamed{"resume", "train"},
                                 Renamed{"sample", "generate"},
                                 Renamed{"infer", "generate"},
                                 Renamed{"inference", "generate"},
                                 Renamed{"init", "new"},
                                 Renamed{"create", "new"},
                                 Renamed{"models", "list models"},
                                 Renamed{"presets", "list models"},
                                 Renamed{"machines", "list machines"},
                                 Renamed{"dashboard", "watch"}};

template <size_t n>
std::string_view name_now(const std::array<Renamed, n>& all, std::string_view before) {
  auto found = std::ranges::find(all, before, &Renamed::before);
  return found == all.end() ? std::string_view() : found->now;
}

// For an argument that the verb does not have: a similar option, or the config key that was given as an option.
std::string hint_for_argument(const CLI::App& verb, std::string_view argument) {
  if (!argument.starts_with("--")) return "";
  std::string_view name = argument.substr(2, argument.find('=') - 2);
  std::string_view renamed = name_now(kRenamedOptions, argument.substr(0, argument.find('=')));
  if (!renamed.empty() && verb.get_option_no_throw(std::string(renamed)))
    return fmt::format("it is called {} now", renamed);
  bool takes_keys = verb.get_option_no_throw("overrides") != nullptr;
  ForeignName foreign = takes_keys ? find_foreign_name(name) : ForeignName{};
  if (foreign.keys.size() == 1)
    return fmt::format("here it is {}; keys of the config are given as {}=VALUE", foreign.ours, foreign.keys.front());
  if (!foreign.ours.empty()) return fmt::format("here it is {}", foreign.ours);
  std::vector<std::string> keys;
  std::string hint = did_you_mean(fmt::format("--{}", name), names_of_options(verb));
  if (!hint.empty() || !takes_keys) return hint;
  for (const Key& key : schema()) keys.emplace_back(key.name);
  std::vector<std::string_view> views(keys.begin(), keys.end());
  auto meant = nearest(name, views);
  return meant ? fmt::format("keys of the config are given as {}=VALUE", *meant) : "";
}

// The likely meaning of a word that is no verb: another verb, a subcommand of one (tokenize), or an option (search).
std::string hint_for_verb(const CLI::App& app, const std::string& word) {
  std::string option = "--" + word;
  if (std::string_view ours = name_now(kOtherVerbs, word); !ours.empty())
    return fmt::format("here it is sextant {}", ours);
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

void refuse_reserved_word(const std::string& word) {
  for (const ReservedVerb& reserved : reserved_verbs())
    if (reserved.word == word)
      throw UserError({.place = "command line",
                       .got = fmt::format("the verb {} is not implemented", word),
                       .expected = "a verb that `sextant --help` lists",
                       .hint = std::string(reserved.instead)});
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

// Explains the words of a command line that remain after the verb has read those that it knows.
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
    if (at == &app) refuse_reserved_word(word);
    throw UserError({.place = at == &app ? "command line" : at->get_name(),
                     .got = fmt::format("no {} is called '{}'", at == &app ? "verb" : "subcommand", printable(word)),
                     .expected = fmt::format("one of {}", fmt::join(known, ", ")),
                     .hint = at == &app ? hint_for_verb(app, word) : did_you_mean(word, known)});
  }
}

const CLI::App& subcommand_named(const CLI::App& app, const std::string& name) {
  std::vector<std::string> known = names_of_subcommands(app);
  if (std::ranges::count(known, name) > 0) return *app.get_subcommand(name);
  if (!app.get_parent()) refuse_reserved_word(name);
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
  } else if (dynamic_cast<const CLI::ExtrasError*>(&error)) {
    explain_extras(verb, app.remaining(true), complaint);
  } else {
    explain_option_error(*verb.app, verb.words, error, complaint);
  }
  return UserError(complaint);
}

}  // namespace sextant
