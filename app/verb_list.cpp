#include <algorithm>
#include <array>

#include "app/verb.h"
#include "base/error.h"

namespace sextant {

namespace {

std::string description_of(const VerbDef& def) {
  return std::string(def.summary) + (def.details.empty() ? "" : ". ") + std::string(def.details);
}

// "bench" of "bench gemm"; empty for a verb of the program itself.
std::string_view parent_words(std::string_view words) {
  size_t blank = words.rfind(' ');
  return blank == words.npos ? "" : words.substr(0, blank);
}

CLI::App& app_named(CLI::App& program, std::string_view words) {
  CLI::App* app = &program;
  for (size_t at = 0; at < words.size();) {
    size_t end = std::min(words.find(' ', at), words.size());
    app = app->get_subcommand(std::string(words.substr(at, end - at)));
    at = end + 1;
  }
  return *app;
}

std::string footer_of(std::string_view words) {
  std::vector<std::string> lines = examples_of(words);
  std::string text = lines.size() == 1 ? "Example:" : "Examples:";
  for (const std::string& line : lines) text += "\n  " + line;
  return text;
}

}  // namespace

std::string_view name_of(VerbGroup group) {
  constexpr std::array<std::string_view, 6> kNames{"start", "train", "plan", "look", "measure", "operate"};
  return kNames[static_cast<size_t>(group)];
}

std::span<const ListedVerb> all_verbs() {
  static const ListedVerb verbs[] = {
#define VERB(name, group) {name##_verb, VerbGroup::group},
#define RESERVED_VERB(word, instead)
#include "app/verbs.def"
#undef VERB
#undef RESERVED_VERB
  };
  return verbs;
}

std::span<const ReservedVerb> reserved_verbs() {
  static constexpr ReservedVerb kReserved[] = {
#define VERB(name, group)
#define RESERVED_VERB(word, instead) {#word, instead},
#include "app/verbs.def"
#undef VERB
#undef RESERVED_VERB
  };
  return kReserved;
}

const VerbDef* find_verb(std::string_view words) {
  for (const ListedVerb& verb : all_verbs())
    if (verb.def.words == words) return &verb.def;
  return nullptr;
}

std::vector<std::string> examples_of(std::string_view words) {
  const VerbDef* verb = find_verb(words);
  std::string_view text = verb ? verb->examples : kProgramExamples;
  BUG_IF(text.empty(), "the verb '{}' has no example", words);
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    lines.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

void declare_verbs(CLI::App& program, VerbContext& context, ExitCode& exit_code) {
  program.footer(footer_of(""));
  for (const ListedVerb& listed : all_verbs()) {
    const VerbDef& def = listed.def;
    CLI::App& parent = app_named(program, parent_words(def.words));
    CLI::App* verb =
        parent.add_subcommand(std::string(def.words.substr(def.words.rfind(' ') + 1)), description_of(def));
    verb->footer(footer_of(def.words));
    if (!def.declare) {
      verb->require_subcommand(1);
      continue;
    }
    verb->callback([verb, &context, &exit_code, action = def.declare(*verb)] {
      context.verb = verb;
      exit_code = action(context);
    });
  }
}

}  // namespace sextant
