#include "answers/asked_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "config/load.h"
#include "models/model.h"
#include "models/presets.h"
#include "run/resolve_spec.h"

namespace sextant {

namespace {

AskedRun asked(std::string name, RunConfig run) {
  AskedRun out{.name = std::move(name), .run = std::move(run), .spec = {}};
  out.spec = resolve_spec(out.run);
  Graph graph = build_model(out.spec, {.seq = 1}, single_rank_mesh());
  out.parameters = parameter_count(graph);
  out.active = active_parameters(graph).all;
  return out;
}

}  // namespace

AskedRun asked_preset(std::string_view preset, std::span<const std::string> overrides, int64_t devices) {
  const Preset* found = find_preset(preset);
  BUG_IF(!found, "{} is no preset", preset);
  int64_t sequences = (kUsualSequences + devices - 1) / devices * devices;
  // Data is not read for a plan: a token file has no part in the model's vocabulary.
  std::vector<std::string> all{fmt::format("model.preset={}", preset),
                               "data.train=tokens.u32",
                               "data.format=tokens-u32",
                               "data.validation_fraction=0",
                               fmt::format("batch.seq={}", std::min(kUsualSeq, found->spec.max_seq)),
                               fmt::format("batch.sequences={}", sequences)};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return asked(std::string(preset), load_config("", all));
}

AskedRun asked_run(const std::string& model, std::span<const std::string> overrides, int64_t devices) {
  if (find_preset(model)) return asked_preset(model, overrides, devices);
  std::error_code none;
  if (!std::filesystem::exists(model, none)) {
    std::string why = why_unsupported(model);
    throw UserError({.place = model,
                     .got = why.empty() ? "neither a file nor a preset" : why,
                     .expected = "a run's TOML file or the name of a preset",
                     .hint = "`sextant list models` has all presets"});
  }
  return asked(std::filesystem::path(model).stem().string(), load_config(model, overrides));
}

}  // namespace sextant
