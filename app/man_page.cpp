#include "app/man_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "app/version.h"
#include "base/error.h"
#include "base/exit_code.h"
#include "base/files.h"
#include "base/nearest.h"

namespace sextant {

namespace {

// Plain text as roff shows it: nothing in it is a request, and a hyphen can be searched for and copied.
std::string roff(std::string_view text) {
  std::string out;
  bool line_begins = true;
  for (size_t i = 0; i < text.size();) {
    auto byte = static_cast<unsigned char>(text[i]);
    size_t length = byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
    if (length > 1 && i + length <= text.size()) {
      uint32_t code = byte & (0x7fu >> length);
      for (size_t k = 1; k < length; ++k) code = code << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3fu);
      out += fmt::format("\\[u{:04X}]", code);
    } else if (byte == '\\') {
      out += "\\e";
    } else if (byte == '-') {
      out += "\\-";
    } else if (byte == '\'') {
      out += "\\(aq";
    } else if (byte == '`') {
      // Backquotes mark code in our own texts; a page has bold and italics for that.
    } else {
      if (line_begins && byte == '.') out += "\\&";
      out += static_cast<char>(byte);
    }
    line_begins = byte == '\n';
    i += length;
  }
  return out;
}

std::string value_name(const CommandOption& option) {
  if (!option.words.empty()) return fmt::format("{}", fmt::join(option.words, "|"));
  switch (option.value) {
    case ArgumentKind::config:
      return "CONFIG.toml";
    case ArgumentKind::overrides:
      return "KEY=VALUE";
    case ArgumentKind::machines:
      return "MACHINE";
    case ArgumentKind::software:
      return "SOFTWARE";
    case ArgumentKind::verbs:
      return "VERB";
    case ArgumentKind::presets:
      return "PRESET";
    default:
      return option.placeholder;
  }
}

std::string synopsis(const Command& command) {
  std::string text = ".B " + roff(command.words.empty() ? "sextant" : "sextant " + command.words) + "\n";
  if (!command.subcommands.empty()) return text + ".I VERB\n[...]\n";
  for (const CommandOption& option : command.options) {
    std::string name = option.positional ? option.names.front() : option.names.front() + " " + value_name(option);
    if (!option.positional && !option.required) continue;
    text += fmt::format("{}{}{}{}\n", option.required ? "" : "[", roff(name), option.repeated ? "..." : "",
                        option.required ? "" : "]");
  }
  return text + "[\\fIoptions\\fR]\n";
}

std::string described(const CommandOption& option) {
  std::string title;
  for (const std::string& name : option.names)
    title += fmt::format("{}\\fB{}\\fR", title.empty() ? "" : ", ", roff(name));
  if (option.value != ArgumentKind::none) title += fmt::format(" \\fI{}\\fR", roff(value_name(option)));
  if (option.repeated) title += " ...";
  std::string notes;
  if (option.required) notes += " Required.";
  if (!option.initial.empty()) notes += fmt::format(" Default: {}.", option.initial);
  if (option.value == ArgumentKind::number) notes += fmt::format(" Takes {}.", option.expected);
  return fmt::format(".TP\n{}\n{}.{}\n", title, roff(option.about), roff(notes));
}

std::string section(std::string_view title, const std::string& text) {
  return text.empty() ? "" : fmt::format(".SH {}\n{}", title, text);
}

std::string exit_status() {
  std::string text;
  for (const ExitMeaning& meaning : exit_meanings())
    text += fmt::format(".TP\n.B {}\n{}: {}.\n", number_of(meaning.code), roff(meaning.name), roff(meaning.meaning));
  return text;
}

std::string environment() {
  return ".TP\n.B SEXTANT_MACHINES\nA folder of machines that is looked into first (plan \\-\\-machine).\n";
}

// Where a page is part of a set, its neighbours: what stands above it and below it.
std::string see_also(const Command& command, const Command& root) {
  std::vector<std::string> names;
  if (&command != &root) names.push_back("sextant");
  for (const Command* other : all_commands(root)) {
    bool below = std::ranges::any_of(command.subcommands, [&](const Command& each) { return &each == other; });
    bool above = std::ranges::any_of(other->subcommands, [&](const Command& each) { return &each == &command; });
    if (below || (above && other != &root)) names.push_back(man_page_name(*other));
  }
  std::string text;
  for (const std::string& name : names)
    text += fmt::format(".BR {} (1){}\n", roff(name), &name == &names.back() ? "" : ",");
  return text;
}

}  // namespace

std::string man_page_name(const Command& command) {
  std::string name = command.words.empty() ? "sextant" : "sextant-" + command.words;
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::string man_page(const Command& command, const Command& root) {
  std::string name = man_page_name(command), title = name, arguments, options, verbs, examples;
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  for (const CommandOption& option : command.options) (option.positional ? arguments : options) += described(option);
  for (const Command& verb : command.subcommands)
    verbs += fmt::format(".TP\n.B {}\n{}.\n", roff(verb.name), roff(verb.about));
  for (const std::string& line : command.examples) examples += fmt::format("    {}\n", roff(line));
  return fmt::format(".\\\" Made by `sextant man`.\n.TH {} 1 \"\" \"sextant {}\" \"Sextant\"\n", roff(title),
                     roff(version_number())) +
         section("NAME", fmt::format("{} \\- {}\n", roff(name), roff(command.about))) +
         section("SYNOPSIS", synopsis(command)) + section("VERBS", verbs) + section("ARGUMENTS", arguments) +
         section("OPTIONS", options) + section("EXAMPLES", ".nf\n" + examples + ".fi\n") +
         section("ENVIRONMENT", &command == &root ? environment() : "") + section("EXIT STATUS", exit_status()) +
         section("SEE ALSO", see_also(command, root));
}

const Command& command_named(const Command& root, std::span<const std::string> words) {
  const Command* command = &root;
  for (const std::string& word : words) {
    auto found = std::ranges::find(command->subcommands, word, &Command::name);
    if (found == command->subcommands.end()) {
      std::vector<std::string> known;
      for (const Command& each : command->subcommands) known.push_back(each.name);
      throw UserError({.place = "man",
                       .got = fmt::format("'{}' is no verb of {}", word, command == &root ? "sextant" : command->words),
                       .expected = known.empty() ? "no word more" : fmt::format("one of {}", fmt::join(known, ", ")),
                       .hint = did_you_mean(word, known)});
    }
    command = &*found;
  }
  return *command;
}

void write_man_pages(const Command& root, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (const Command* command : all_commands(root))
    write_file_atomically(folder / (man_page_name(*command) + ".1"), man_page(*command, root));
}

}  // namespace sextant
