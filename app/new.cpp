// `sextant new`: a config to begin with, written from the text, the model and the machine that there are.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/device.h"
#include "app/json_output.h"
#include "app/output_file.h"
#include "app/time_budget.h"
#include "app/verb.h"
#include "app/verbosity_options.h"
#include "base/error.h"
#include "base/files.h"
#include "base/printable.h"
#include "base/verbosity.h"
#include "propose/proposal.h"
#include "run/resolve_spec.h"

namespace sextant {

namespace {

struct NewArguments {
  std::string text, model, preset;
  double minutes = 10;  // that training may take; 0: no limit
  std::string out;      // empty: standard output
  bool json = false;
  Verbosity verbosity = Verbosity::usual;
};

// Named by the option, before anything is proposed.
void require_preset(const std::string& preset) {
  if (preset.empty()) return;
  RunConfig run;
  run.model.preset = preset;
  run.places["model.preset"] = "--preset " + preset;
  resolve_spec(run);
}

void add_new_options(CLI::App& verb, NewArguments& a) {
  verb.add_option("--from-text", a.text,
                  "train on this: text, JSONL or token file, or a folder of them [the built-in stories]");
  CLI::Option* model =
      verb.add_option("--from-model", a.model, "go on from this model: a Hugging Face directory, or a run's --out");
  verb.add_option("--preset", a.preset, "a published model, with new weights; `sextant list models` lists them")
      ->excludes(model);
  verb.add_option(
          "--minutes", a.minutes,
          "how long training may take here: decides the size of a new model and the steps, by the speed that is "
          "measured; 0: no limit, the amount of text decides")
      ->check(CLI::Range(0.0, 1e7))
      ->capture_default_str();
  verb.add_option("--out", a.out, "file to write; it must not exist [standard output]")->check(output_file("--out"));
  verb.add_flag("--json", a.json, "print JSON: the config, and what was chosen");
  add_quiet(verb, a.verbosity, "do not say what was chosen");
}

void run_new(const NewArguments& a) {
  if (a.text.empty() && a.model.empty() && a.preset.empty())
    throw UserError({.place = "new",
                     .got = "nothing to begin with is given",
                     .expected = "one or more of --from-text, --from-model and --preset"});
  std::error_code none;
  if (!a.out.empty() && std::filesystem::exists(a.out, none))
    throw UserError({.place = "--out " + a.out, .got = "the file exists", .expected = "a name of a new file"});
  require_preset(a.preset);
  std::unique_ptr<Executor> executor = executor_for("auto", 0);
  std::optional<Bytes> room = executor->room();
  BUG_IF(!room, "the device does not know its memory");
  Proposal proposal = propose_config({.text = a.text,
                                      .model = a.model,
                                      .preset = a.preset,
                                      .device = std::string(word_of(device_of_auto())),
                                      .room = *room,
                                      .minutes = a.minutes,
                                      .step_seconds = timed_step,
                                      .target = [](const RunConfig& run) { return target_for(run, 1); }});
  std::FILE* remarks = a.out.empty() ? stderr : stdout;
  if (!a.out.empty()) write_file_atomically(a.out, proposal.toml);
  using Json = nlohmann::ordered_json;
  if (a.json)
    return print_json({{"file", a.out.empty() ? Json(nullptr) : Json(a.out)},
                       {"config", proposal.toml},
                       {"reasons", proposal.reasons}});
  if (a.out.empty()) fmt::print("{}", proposal.toml);
  if (a.verbosity == Verbosity::quiet) return;
  for (const std::string& reason : proposal.reasons) fmt::print(remarks, "{}\n", printable(reason));
  if (!a.out.empty()) fmt::print("written: {}; now `sextant train {}`\n", printable(a.out), printable(a.out));
}

constexpr ValueFormat kNewValues[] = {
    {"MODEL", "the --out directory of a run, a checkpoint or a Hugging Face directory", "--from-model"},
    {"NAME", "the name of a preset (sextant list models)", "--preset"},
    {"FILE", "the name of a file to write", "--out"},
    {"PATH", "a file or a folder", "--from-text"},
};

}  // namespace

const VerbDef new_verb{
    .words = "new",
    .summary = "Write a config for your text or model on this machine",
    .details = "",
    .examples =
        "sextant new --from-text my.txt --out my.toml\n"
        "sextant new --preset pythia-70m --out pythia.toml",
    .values = kNewValues,
    .declare = declare_verb<add_new_options, run_new>,
};

}  // namespace sextant
