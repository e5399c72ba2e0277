#include "app/help_formatter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <sstream>

#include "app/option_values.h"
#include "app/verb.h"

namespace sextant {

namespace {

constexpr size_t kColumn = 30;           // where descriptions begin
constexpr size_t kLongestWordList = 40;  // a longer one is shown by its name alone; the description lists the words

std::vector<std::string> names_of(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options) names.push_back(option->get_name());
  std::ranges::sort(names);  // the set is ordered by addresses
  return names;
}

// A line of two columns; the second begins on a line of its own where the first is too long.
std::string two_columns(const std::string& left, const std::string& right) {
  std::string line = "  " + left;
  if (right.empty()) return line + "\n";
  if (line.size() + 2 > kColumn)
    return line + "\n" + std::string(kColumn, ' ') + wrapped(right, kHelpColumns, kColumn, kColumn) + "\n";
  line.resize(kColumn, ' ');
  return line + wrapped(right, kHelpColumns, kColumn, kColumn) + "\n";
}

class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::string verb_words) : verb_words_(std::move(verb_words)) {}

  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    OptionValue value = value_of(*option, verb_words_);
    std::string left = make_option_name(option, is_positional);
    bool listed = value.words.empty() || value.placeholder.size() <= kLongestWordList;
    if (!is_positional && !value.placeholder.empty()) left += " " + (listed ? value.placeholder : "WORD");
    if (option->get_expected_max() > 1) left += " ...";
    return two_columns(left, described(*option, value, is_positional || !listed));
  }

  std::string make_subcommand(const CLI::App* verb) const override {
    return two_columns(verb->get_display_name(true), verb->get_description());
  }

  std::string make_description(const CLI::App* app) const override {
    return wrapped(app->get_description(), kHelpColumns, 0, 0) + "\n";
  }

  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, name);
    usage.pop_back();  // its line break
    return wrapped(usage, kHelpColumns, 4, 0) + "\n";
  }

 private:
  // An option's purpose, its default, its allowed values, and the other options that it needs or excludes.
  static std::string described(const CLI::Option& option, const OptionValue& value, bool names_words) {
    std::string text = option.get_description();
    if (!value.placeholder.empty() && !option.get_default_str().empty())
      text += fmt::format(" [{}]", option.get_default_str());
    if (names_words && !value.words.empty()) text += fmt::format("; one of {}", fmt::join(value.words, ", "));
    if (!value.bounds.empty()) text += "; " + value.bounds.substr(value.bounds.starts_with("of ") ? 3 : 0);
    if (option.get_required()) text += "; required";
    if (!option.get_needs().empty()) text += fmt::format("; needs {}", fmt::join(names_of(option.get_needs()), ", "));
    if (!option.get_excludes().empty())
      text += fmt::format("; not with {}", fmt::join(names_of(option.get_excludes()), ", "));
    return text;
  }

  std::string verb_words_;
};

// The program's own page: the verbs in their groups, one line each, on one screen of a terminal.
class ProgramHelp : public HelpFormatter {
 public:
  ProgramHelp() : HelpFormatter("") {}

  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    if (app->get_parent()) return HelpFormatter::make_help(app, std::move(name), mode);
    std::string text = app->get_description() + "\n\n", group;
    for (const ListedVerb& verb : all_verbs()) {
      if (verb.def.words.find(' ') != std::string_view::npos) continue;
      bool begins = group != name_of(verb.group);
      group = name_of(verb.group);
      text += fmt::format("{:<9}{:<14}{}\n", begins ? group : "", verb.def.words, verb.def.summary);
    }
    text += "\nsextant VERB --help shows a verb's options; -h, --help; --version, --json\n";
    return text + app->get_footer() + "\n";
  }
};

void format_below(CLI::App& app, const std::string& words) {
  if (words.empty())
    app.formatter(std::make_shared<ProgramHelp>());
  else
    app.formatter(std::make_shared<HelpFormatter>(words));
  for (CLI::App* verb : app.get_subcommands(nullptr))
    format_below(*verb, words.empty() ? verb->get_name() : words + " " + verb->get_name());
}

}  // namespace

std::string wrapped(const std::string& text, size_t width, size_t indent, size_t begun) {
  std::string out;
  size_t column = begun;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    bool first = column == begun && out.empty();
    if (!first && column + 1 + word.size() > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!first) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

void format_help_pages(CLI::App& app) {
  format_below(app, "");
}

}  // namespace sextant
