// A verb of the command line: what help says of it, the options it takes and the function that runs. Each verb is one
// file of app/ that defines NAME_verb, and one line of app/verbs.def.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/exit_code.h"

namespace sextant {

class Processes;

// In the order of `sextant --help`.
enum class VerbGroup : uint8_t { start, train, plan, look, measure, operate };
std::string_view name_of(VerbGroup group);

// Surroundings of a verb that runs, besides its own options.
struct VerbContext {
  Processes& processes;
  const CLI::App& program;         // with all verbs, which `help`, `man` and `completions` describe
  std::string command;             // the command line, quoted for a shell
  const CLI::App* verb = nullptr;  // the verb that runs

  bool is_given(const std::string& option) const { return verb->count(option) > 0; }
};

using VerbAction = std::function<ExitCode(VerbContext& context)>;

// Values of an option in words. For numbers, `phrase` is what is counted.
struct ValueFormat {
  std::string_view placeholder, phrase;
  std::string_view options;  // separated by blanks
};

struct VerbDef {
  std::string_view words;               // "bench gemm": below the verb `bench`
  std::string_view summary;             // one line of the list of verbs, without a full stop
  std::string_view details;             // follows the summary in the verb's own help; may be empty
  std::string_view examples;            // one command line each line: they run in a checkout, in the order of verbs.def
  std::span<const ValueFormat> values;  // where app/option_values.cpp has no row, or another one
  VerbAction (*declare)(CLI::App& verb);  // adds the options; nullptr: the verb has only verbs below it
};

template <class Arguments>
std::type_identity<Arguments> arguments_of(void (*add_options)(CLI::App& verb, Arguments& arguments));

// VerbDef::declare from two functions: `add_options(CLI::App&, Arguments&)`, and `run(const Arguments&)` or
// `run(const Arguments&, VerbContext&)`, which returns an ExitCode or nothing.
template <auto add_options, auto run>
VerbAction declare_verb(CLI::App& verb) {
  using Arguments = typename decltype(arguments_of(add_options))::type;
  auto arguments = std::make_shared<Arguments>();
  add_options(verb, *arguments);
  return [arguments](VerbContext& context) {
    auto call = [&] {
      if constexpr (std::is_invocable_v<decltype(run), const Arguments&>)
        return run(*arguments);
      else
        return run(*arguments, context);
    };
    if constexpr (std::is_void_v<decltype(call())>) {
      call();
      return ExitCode::finished;
    } else {
      return call();
    }
  };
}

struct ListedVerb {
  const VerbDef& def;
  VerbGroup group;
};
// In the order of verbs.def: each group together, a verb before those below it.
std::span<const ListedVerb> all_verbs();
// "bench gemm"; nullptr where there is none, and for "", the program itself.
const VerbDef* find_verb(std::string_view words);

// Examples of the program itself, as VerbDef::examples.
inline constexpr std::string_view kProgramExamples =
    "sextant train configs/tiny-llama.toml\n"
    "sextant plan configs/demo.toml --machine h200";
std::vector<std::string> examples_of(std::string_view words);

// Adds all verbs to the program. The one that is parsed runs, and sets `exit_code`.
void declare_verbs(CLI::App& program, VerbContext& context, ExitCode& exit_code);

// A word that verbs to come will have: `sextant WORD` says that it is not implemented, and what there is.
struct ReservedVerb {
  std::string_view word, instead;
};
std::span<const ReservedVerb> reserved_verbs();

#define VERB(name, group) extern const VerbDef name##_verb;
#define RESERVED_VERB(word, instead)
#include "app/verbs.def"
#undef VERB
#undef RESERVED_VERB

}  // namespace sextant
