#include "search/layout_overrides.h"

#include <fmt/format.h>

#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "config/load.h"
#include "config/mesh_axes.h"
#include "config/schema.h"

namespace sextant {

namespace {

struct LayoutKey {
  std::string_view name;
  bool always = false;  // printed even where it is the default
};

// Keys that with_choice sets, and keys that a search turns on where nothing fits without them.
std::vector<LayoutKey> layout_keys() {
  std::vector<LayoutKey> keys;
  for (const MeshAxis& axis : kMeshAxes) keys.push_back({axis.key, axis.always_told});
  for (LayoutKey key : {LayoutKey{"mesh.zero", true},
                        {"mesh.zero_ranks"},
                        {"mesh.ep"},
                        {"mesh.etp"},
                        {"mesh.sequence_parallel"},
                        {"pipeline.schedule"},
                        {"pipeline.chunks"},
                        {"pipeline.file"},
                        {"pipeline.layers"},
                        {"pipeline.deferred_gradients"},
                        {"batch.microbatch", true},
                        {"train.recompute", true},
                        {"offload.optimizer"},
                        {"offload.weights"},
                        {"offload.working_weights"},
                        {"offload.activations"},
                        {"offload.to"},
                        {"offload.path"}})
    keys.push_back(key);
  return keys;
}

const Key& key_of(std::string_view name) {
  const Key* key = find_key(name);
  BUG_IF(!key, "the layout's key {} is not in the schema", name);
  return *key;
}

// Strings stand without quotes on a command line.
std::string override_text(const ConfigValue& value) {
  auto text = std::get_if<std::string>(&value);
  return text ? *text : toml_text(value);
}

}  // namespace

std::string layout_overrides(const RunConfig& run, const RunConfig& layout) {
  const RunConfig defaults;
  std::string text;
  for (const LayoutKey& each : layout_keys()) {
    const Key& key = key_of(each.name);
    ConfigValue value = key.get(layout);
    if (!each.always && !run.given(each.name) && value == key.get(defaults) && value == key.get(run)) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", each.name, override_text(value));
  }
  return text;
}

std::string layout_toml(const RunConfig& layout, const std::string& remark) {
  const RunConfig defaults;
  RunConfig run = layout;
  for (const LayoutKey& each : layout_keys()) {
    const Key& key = key_of(each.name);
    if (each.always || key.get(run) != key.get(defaults)) run.places.try_emplace(std::string(each.name), "the search");
  }
  return fmt::format("# {}\n{}", remark, config_toml(run));
}

}  // namespace sextant
