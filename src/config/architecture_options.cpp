#include "config/architecture_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/complaints.h"
#include "config/resolve.h"
#include "config/schema.h"

namespace sextant {

namespace {

bool is_part_of(std::string_view field, std::string_view option) {
  return field == option || (field.starts_with(option) && field[option.size()] == '.');
}

RunConfig small_model(const ModelDef& def) {
  RunConfig run;
  run.model.set<&ModelSpec::architecture>(std::string(def.name));
  run.model.set<&ModelSpec::layers>(4);
  run.model.set<&ModelSpec::hidden>(64);
  run.model.set<&ModelSpec::heads>(4);
  run.model.set<&ModelSpec::vocab>(97);
  return run;
}

ModelSpec spec_of(const RunConfig& run) {
  Complaints ignored;
  return draft_model(run, ignored);
}

// Whether that value is another than the architecture's own, and nothing is wrong with it by itself: it may still need
// another option beside it.
bool is_choice(const ModelDef& def, std::string_view option, const Key& key, const ConfigValue& value) {
  RunConfig run = small_model(def);
  if (option == "rope_scaling") run.model.set<&RopeScaling::factor>(2);  // 1, its default, is no scaling
  key.set(run, value);
  const ModelSpec spec = spec_of(run);
  if (spec == spec_of(small_model(def))) return false;
  return std::ranges::none_of(problems_of(spec), [&](const SpecProblem& problem) {
    return std::ranges::all_of(problem.fields, [&](std::string_view field) { return is_part_of(field, option); });
  });
}

bool leaves_choice(const ModelDef& def, std::string_view option) {
  bool has_key = false, has_number = false, has_choice = false;
  const std::string name = fmt::format("model.{}", option);
  for (const Key& key : schema()) {
    if (!is_part_of(key.name, name)) continue;
    has_key = true;
    if (key.kind == Kind::flag) {
      has_choice |= is_choice(def, option, key, true) || is_choice(def, option, key, false);
    } else if (!key.choices.empty()) {
      has_choice |= std::ranges::any_of(
          words_of(key), [&](std::string_view word) { return is_choice(def, option, key, std::string(word)); });
    } else if (option != "rope_scaling") {  // whose numbers are those of its type
      has_number = true;
    }
  }
  return has_key && (has_number || has_choice);
}

}  // namespace

std::vector<std::string_view> options_of(const ModelDef& def) {
  std::vector<std::string_view> options;
  if (def.free_heads && !def.takes("latent")) options.emplace_back("kv_heads");
  if (def.free_heads && is_choice(def, "head_dim", *find_key("model.head_dim"), int64_t{32}))
    options.emplace_back("head_dim");
  for (std::string_view option : def.options)
    if (leaves_choice(def, option)) options.push_back(option);
  return options;
}

}  // namespace sextant
