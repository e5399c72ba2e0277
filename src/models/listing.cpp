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

std::string row_of(const ModelDef& def) {
  std::vector<std::string_view> types;
  for (const HfType& type : def.hf_types) types.push_back(type.model_type);
  std::string options = def.free_heads ? "kv_heads, head_dim" : "";
  for (std::string_view option : def.options) options += fmt::format("{}{}", options.empty() ? "" : ", ", option);
  return fmt::format("{:<11} {}\n{:12}positions {}, tied_head {}; options: {}; Hugging Face: {}\n", def.name, def.about,
                     "", name_of(def.positions), def.defaults.tied_head, options.empty() ? "none" : options,
                     fmt::join(types, ", "));
}

}  // namespace

std::string list_of_models() {
  std::string out = "architectures, for model.architecture\n\n";
  for (const ModelDef* def : all_models()) out += row_of(*def);
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
