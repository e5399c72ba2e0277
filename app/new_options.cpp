#include "app/new_options.h"

#include <CLI/CLI.hpp>

#include "app/output_file.h"
#include "app/verbosity_options.h"

namespace sextant {

void add_new(CLI::App& app, NewArguments& a) {
  CLI::App* verb = app.add_subcommand("new", "Write a commented config for your text or model on this machine");
  verb->add_option("--from-text", a.text,
                   "train on this: text, JSONL or token file, or a folder of them [the built-in stories]");
  CLI::Option* model =
      verb->add_option("--from-model", a.model, "go on from this model: a Hugging Face directory, or a run's --out");
  verb->add_option("--preset", a.preset, "a published model, with new weights; `sextant list models` lists them")
      ->excludes(model);
  verb->add_option(
          "--minutes", a.minutes,
          "how long training may take here: decides the size of a new model and the steps, by the speed that is "
          "measured; 0: no limit, the amount of text decides")
      ->check(CLI::Range(0.0, 1e7))
      ->capture_default_str();
  verb->add_option("--out", a.out, "file to write; it must not exist [standard output]")->check(output_file("--out"));
  verb->add_flag("--json", a.json, "print JSON: the config, and what was chosen");
  add_quiet(*verb, a.verbosity, "do not say what was chosen");
  verb->callback([&a] { new_verb(a); });
}

}  // namespace sextant
