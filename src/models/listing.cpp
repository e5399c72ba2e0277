#include "models/listing.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/hf_type.h"
#include "models/models.h"
#include "models/presets.h"

namespace sextant {

namespace {

std::string_view name_of(Positions positions) {
  switch (positions) {
    case Positions::learned:
      return "learned";
    case Positions::rotary:
      return "rotary";
    case Positions::alibi:
      return "ALiBi";
  }
  return "";
}

// The model types under which Hugging Face has it.
std::vector<std::string> published_types(const ModelDef& def) {
  std::vector<std::string> types;
  for (const HfType& type : def.hf_types) {
    if (type.known == HfKnown::in_transformers) types.emplace_back(type.model_type);
    if (type.known == HfKnown::remote_code) types.push_back(fmt::format("{} (remote code)", type.model_type));
  }
  return types;
}

std::string row_of(const ModelDef& def, const std::vector<std::string_view>& options) {
  std::vector<std::string> types = published_types(def);
  return fmt::format("{:<11} {}\n{:12}positions {}, tied_head {}; options: {}; Hugging Face: {}\n", def.name, def.about,
                     "", name_of(def.positions), def.defaults.tied_head,
                     options.empty() ? "none" : fmt::format("{}", fmt::join(options, ", ")),
                     types.empty() ? "none" : fmt::format("{}", fmt::join(types, ", ")));
}

}  // namespace

std::string list_of_models(std::vector<std::string_view> (*options_of)(const ModelDef& def)) {
  std::string out = "architectures, for model.architecture\n\n";
  for (const ModelDef* def : all_models()) out += row_of(*def, options_of(*def));
  size_t name = 0, about = 0;
  for (const Preset& preset : presets())
    name = std::max(name, preset.name.size()), about = std::max(about, preset.about.size());
  out += fmt::format(
      "\npresets, for model.preset\n\n{:<{}}  {:<{}}  {:<12} {:>6} {:>6} {:>5} {:>8} {:>6} {:>6} {:>7}\n", "name", name,
      "model", about, "architecture", "layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "max_seq");
  for (const Preset& preset : presets()) {
    const ModelSpec& spec = preset.spec;
    out += fmt::format("{:<{}}  {:<{}}  {:<12} {:>6} {:>6} {:>5} {:>8} {:>6} {:>6} {:>7}\n", preset.name, name,
                       preset.about, about, spec.architecture, spec.layers, spec.hidden, spec.heads, spec.kv_heads,
                       spec.ffn, spec.vocab, spec.max_seq);
  }
  return out;
}

}  // namespace sextant
