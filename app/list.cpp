// `sextant list`: what a config or an option may name. Each list comes from the table that the program itself reads.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/verb.h"
#include "base/error.h"
#include "base/files.h"
#include "base/program_folder.h"
#include "config/architecture_options.h"
#include "cost/machine_file.h"
#include "cost/software_profile_file.h"
#include "models/listing.h"
#include "models/models.h"
#include "models/presets.h"
#include "optim/optimizer.h"
#include "schedule/schedules.h"

namespace sextant {

namespace {

struct ListArguments {
  std::string what;  // one of list_names()
  bool json = false;
};

namespace fs = std::filesystem;

struct Item {
  std::string name, about;
};

std::vector<Item> machines() {
  std::vector<Item> items;
  for (const std::string& name : known_machines()) items.push_back({name, load_machine(name).about});
  return items;
}

std::vector<Item> software() {
  std::vector<Item> items;
  for (const SoftwareProfile& profile : load_profiles()) items.push_back({profile.name, profile.about});
  return items;
}

std::vector<Item> schedules() {
  std::vector<Item> items;
  for (const ScheduleDef& def : kSchedules) items.push_back({std::string(def.name), shapes_text(def)});
  return items;
}

std::vector<Item> optimizers_of_configs() {
  std::vector<Item> items;
  for (const OptimizerDef* def : all_optimizers()) items.push_back({std::string(def->name), std::string(def->summary)});
  return items;
}

std::vector<Item> models() {
  std::vector<Item> items;
  for (const ModelDef* def : all_models()) items.push_back({std::string(def->name), std::string(def->about)});
  for (const Preset& preset : presets()) items.push_back({std::string(preset.name), std::string(preset.about)});
  return items;
}

// The first line of a config says what it is for.
std::string first_comment(const fs::path& path) {
  std::string text = read_file(path), line = text.substr(0, text.find('\n'));
  return line.starts_with("# ") ? line.substr(2) : "";
}

std::vector<Item> configs() {
  std::vector<Item> items;
  for (const auto& entry : fs::recursive_directory_iterator(program_folder("configs")))
    if (entry.path().extension() == ".toml") items.push_back({entry.path().string(), first_comment(entry.path())});
  std::ranges::sort(items, {}, &Item::name);
  return items;
}

struct List {
  std::string_view name, about;
  std::vector<Item> (*items)();
};

constexpr std::array kLists{
    List{"models", "architectures (model.architecture) and published models (model.preset)", models},
    List{"machines", "what plan --machine knows", machines},
    List{"software", "whose software plan --software can assume", software},
    List{"schedules", "pipeline.schedule", schedules},
    List{"optimizers", "optimizer.name", optimizers_of_configs},
    List{"configs", "configs that come with the program", configs},
};

std::string text_of(const std::vector<Item>& items) {
  size_t width = 0;
  for (const Item& item : items) width = std::max(width, item.name.size());
  std::string text;
  for (const Item& item : items)
    text += item.about.empty() ? item.name + "\n" : fmt::format("{:<{}}  {}\n", item.name, width, item.about);
  return text;
}

std::vector<std::string> list_names() {
  std::vector<std::string> names;
  for (const List& list : kLists) names.emplace_back(list.name);
  return names;
}

std::string list_about() {
  std::string text;
  for (const List& list : kLists) text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", list.name, list.about);
  return text;
}

void add_list_options(CLI::App& verb, ListArguments& a) {
  verb.add_option("what", a.what, list_about())->required()->check(CLI::IsMember(list_names()));
  verb.add_flag("--json", a.json, "print JSON");
}

void run_list(const ListArguments& a) {
  const List* list = std::ranges::find(kLists, a.what, &List::name);
  BUG_IF(list == kLists.end(), "there is no list of {}", a.what);
  if (a.json) {
    nlohmann::ordered_json json = nlohmann::ordered_json::array();
    for (const Item& item : list->items()) json.push_back({{"name", item.name}, {"about", item.about}});
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("{}", a.what == "models" ? list_of_models(options_of) : text_of(list->items()));
  }
}

}  // namespace

const VerbDef list_verb{
    .words = "list",
    .summary = "List what a config or an option may name",
    .details = "",
    .examples =
        "sextant list models\n"
        "sextant list machines --json",
    .values = {},
    .declare = declare_verb<add_list_options, run_list>,
};

}  // namespace sextant
