// `sextant new`: a config to begin with, written from the text, the model and the machine that there are.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/device.h"
#include "app/json_output.h"
#include "app/new_options.h"
#include "app/time_budget.h"
#include "base/error.h"
#include "base/files.h"
#include "base/printable.h"
#include "propose/proposal.h"
#include "run/resolve_spec.h"

namespace sextant {

namespace {

// Named by the option, before anything is proposed.
void require_preset(const std::string& preset) {
  if (preset.empty()) return;
  RunConfig run;
  run.model.preset = preset;
  run.places["model.preset"] = "--preset " + preset;
  resolve_spec(run);
}

}  // namespace

void new_verb(const NewArguments& a) {
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

}  // namespace sextant
