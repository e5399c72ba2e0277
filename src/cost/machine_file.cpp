#include "cost/machine_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>

#include "base/files.h"
#include "base/nearest.h"
#include "base/program_folder.h"
#include "cost/machine_fields.h"
#include "cost/toml_fields.h"

namespace sextant {

namespace {

constexpr std::string_view kEnding = ".toml";
constexpr std::string_view kProfiles = "software";  // lies beside the machines and is none
constexpr std::string_view kGroupedTable = "grouped_products";

// Of the user, as environment variables and the XDG base directories have it.
std::vector<std::filesystem::path> own_machine_folders() {
  std::vector<std::filesystem::path> folders;
  auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return value && *value ? value : nullptr;
  };
  if (const char* own = set("SEXTANT_MACHINES")) folders.emplace_back(own);
  if (const char* config = set("XDG_CONFIG_HOME"))
    folders.push_back(std::filesystem::path(config) / "sextant" / "machines");
  else if (const char* home = set("HOME"))
    folders.push_back(std::filesystem::path(home) / ".config" / "sextant" / "machines");
  return folders;
}

std::string this_host() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 && name[0] ? name.data() : "this-machine";
}

std::vector<std::filesystem::path> machine_folders() {
  std::vector<std::filesystem::path> folders = own_machine_folders();
  folders.push_back(program_folder("machines"));
  return folders;
}

bool is_list_of(const TomlValue& value, size_t size, std::vector<double>& numbers) {
  auto list = std::get_if<TomlValue::List>(&value.is);
  if (!list || list->size() != size) return false;
  for (const TomlValue& item : *list) {
    std::optional<double> number = number_of(item);
    if (!number || !(*number > 0 && *number < 1e12)) return false;
    numbers.push_back(*number);
  }
  return true;
}

enum class Base { allowed, refused };

class MachineReader {
 public:
  MachineReader(std::string_view text, std::string_view place, Base base)
      : entries_(parse_toml(text, place)), place_(place), base_(base), reader_(place) {}

  Machine read() {
    start_from_device();
    for (const TomlEntry& entry : entries_)
      if (!is_under(entry.key, "fitted") && !is_under(entry.key, "fitted_experts")) read(entry);
    read_fitted("fitted", machine_.fitted, machine_.fitted_on);
    read_fitted("fitted_experts", machine_.fitted_experts, machine_.fitted_experts_on);
    if (machine_.name.empty()) machine_.name = std::filesystem::path(place_).stem().string();
    machine_.place = place_;
    check_complete();
    reader_.throw_if_any();
    return std::move(machine_);
  }

 private:
  static bool is_under(std::string_view key, std::string_view table) {
    return key.starts_with(table) && (key.size() == table.size() || key[table.size()] == '.');
  }

  bool has(std::string_view table) const {
    return std::any_of(entries_.begin(), entries_.end(),
                       [&](const TomlEntry& entry) { return is_under(entry.key, table); });
  }

  void start_from_device() {
    auto from = std::find_if(entries_.begin(), entries_.end(),
                             [](const TomlEntry& entry) { return entry.key == "device_from"; });
    if (from == entries_.end()) return;
    started_ = true;  // or would have: what it lacks is then not worth saying
    auto name = std::get_if<std::string>(&from->value.is);
    std::string file = name ? find_machine_file(*name) : "";
    if (base_ == Base::refused)
      return reader_.complain(*from, {.got = "another machine starts from this one, which starts from a third",
                                      .expected = "a machine without device_from"});
    if (file.empty())
      return reader_.complain(*from, {.got = "got " + shown(from->value),
                                      .expected = "the name of a machine",
                                      .hint = fmt::format("there are {}", fmt::join(known_machines(), ", "))});
    machine_ = MachineReader(read_file(file), file, Base::refused).read();
    kind_ = static_cast<size_t>(machine_.device.kind);
    machine_.name.clear();
    machine_.about.clear();
    machine_.date.clear();
    if (!has("level")) return;
    machine_.levels.clear();
    machine_.sources.erase("level");
  }

  void read(const TomlEntry& entry) {
    if (!skipped_.empty() && is_under(entry.key, skipped_)) return;
    if (std::holds_alternative<TomlValue::Table>(entry.value.is)) return open_table(entry);
    auto [table, key] = table_and_key(entry.key);
    if (table == "device.peak_tflops") return read_by_type(entry, key, table, peak_field, machine_.device.peaks);
    if (table == "device.gemm_rate")
      return read_by_type(entry, key, table, gemm_rate_field, machine_.device.gemm_rates);
    if (table == "products") return read_gemms(entry, key);
    if (auto [parent, type] = table_and_key(table); parent == kGroupedTable)
      return read_grouped_gemms(entry, std::string(type), key);
    if (table == "ops") return read_ops(entry, key);
    if (table == "source") return read_source(entry, key);
    if (table.empty() && key == "device_from") return;  // done
    reader_.read(entry, key, fields_of(table), table);
    machine_.device.kind = static_cast<DeviceKind>(kind_);
    // A cluster's own efficiency counts for it, whatever its device was fitted to elsewhere.
    for (std::optional<Efficiencies>* fitted : {&machine_.fitted, &machine_.fitted_experts})
      if (table == "efficiency" && *fitted) {
        FieldReader again(place_);
        again.read(entry, key, efficiency_fields(**fitted), table);
      }
  }

  // Tables with names of their own are made when they open.
  void open_table(const TomlEntry& entry) {
    static const std::set<std::string_view> known{
        "device",     "device.peak_tflops", "device.gemm_rate", "node", "level",       "run",
        "efficiency", "products",           "attention",        "ops",  kGroupedTable, "source",
        "host"};
    auto [parent, name] = table_and_key(entry.key);
    bool named = name.find('"') == name.npos;
    if (parent == "level" && named) {
      level(name);
    } else if (parent == "attention" && named) {
      machine_.attention[std::string(name)];
    } else if (parent == kGroupedTable && std::ranges::count(kPeakTypes, name) > 0) {
      return;  // its lists are read one by one
    } else if (!known.contains(entry.key)) {
      skipped_ = entry.key;
      reader_.complain(
          entry, {.got = "is not a known table",
                  .hint = fmt::format(
                      "there are {}, fitted, fitted_experts, level.NAME, attention.KERNEL, {}.TYPE with one of {}",
                      fmt::join(known, ", "), kGroupedTable, fmt::join(kPeakTypes, ", "))});
    }
  }

  Level& level(std::string_view name) {
    for (Level& each : machine_.levels)
      if (each.name == name) return each;
    machine_.levels.push_back({.name = std::string(name)});
    machine_.levels.back().topology = topology_of(name);
    return machine_.levels.back();
  }

  const TomlEntry* find_entry(std::string_view key) const {
    auto found = std::ranges::find(entries_, key, &TomlEntry::key);
    return found == entries_.end() ? nullptr : &*found;
  }

  // Before anything else of the level is read: it decides which keys the level has.
  Topology topology_of(std::string_view level_name) const {
    const TomlEntry* entry = find_entry(fmt::format("level.{}.topology", level_name));
    auto word = entry ? std::get_if<std::string>(&entry->value.is) : nullptr;
    auto known = word ? std::ranges::find(kTopologies, *word) : kTopologies.end();
    return known == kTopologies.end() ? Topology{} : topology_of_kind(static_cast<size_t>(known - kTopologies.begin()));
  }

  void check_topology(size_t level_number) {
    const Level& level = machine_.levels[level_number];
    std::optional<TopologyProblem> problem = problem_of(level.topology, machine_.extent_of(level_number));
    if (!problem) return;
    std::string table = fmt::format("level.{}", level.name);
    const TomlEntry* entry = find_entry(fmt::format("{}.{}", table, problem->key));
    bool given = entry != nullptr;
    if (!given) entry = find_entry(table + ".topology");
    Complaint complaint{.got = given ? problem->got : fmt::format("{}.{} {}", table, problem->key, problem->got),
                        .expected = problem->expected};
    if (entry) return reader_.complain(*entry, std::move(complaint));
    complaint.place = place_;
    reader_.complain(std::move(complaint));
  }

  std::vector<Field> fields_of(std::string_view table) {
    if (table.empty()) return top_fields(machine_);
    if (table == "device") return device_fields(machine_.device, kind_);
    if (table == "node") return node_fields(machine_);
    if (table == "host") return host_fields(machine_.host);
    if (table == "efficiency") return efficiency_fields(machine_.tables);
    if (table == "run") return run_fields(machine_);
    auto [parent, name] = table_and_key(table);
    if (parent == "level") {
      Level& at = level(name);
      topology_ = at.topology.index();
      return level_fields(at, topology_);
    }
    if (parent == "attention") return attention_fields(machine_.attention[std::string(name)]);
    return {};  // [level] and [attention] have tables only
  }

  void read_by_type(const TomlEntry& entry, std::string_view key, std::string_view table,
                    Field (*field)(std::string_view, double&), std::map<std::string, double>& into) {
    std::array<double, kPeakTypes.size()> given{};
    std::vector<Field> fields;
    for (size_t i = 0; i < given.size(); ++i) fields.push_back(field(kPeakTypes[i], given[i]));
    reader_.read(entry, key, fields, table);
    for (size_t i = 0; i < given.size(); ++i)
      if (given[i] > 0) into[std::string(kPeakTypes[i])] = given[i];
  }

  void read_gemms(const TomlEntry& entry, std::string_view key) {
    if (std::ranges::count(kPeakTypes, key) == 0)
      return reader_.complain(
          entry, {.got = "is not a known type", .expected = fmt::format("one of {}", fmt::join(kPeakTypes, ", "))});
    std::string type(key);
    std::erase_if(machine_.gemms, [&](const MeasuredGemm& gemm) { return gemm.dtype == type; });
    auto list = std::get_if<TomlValue::List>(&entry.value.is);
    bool fits = list;
    for (size_t i = 0; fits && i < list->size(); ++i) {
      std::vector<double> n;
      fits = is_list_of((*list)[i], 4, n);
      if (fits) machine_.gemms.push_back({n[0], n[1], n[2], n[3] / 1e6, type});
    }
    if (!fits)
      reader_.complain(
          entry, {.got = "got " + shown(entry.value), .expected = "a list of [rows, columns, depth, microseconds]"});
  }

  void read_grouped_gemms(const TomlEntry& entry, const std::string& type, std::string_view key) {
    auto pass = std::ranges::find(kGroupedPasses, key);
    if (pass == kGroupedPasses.end())
      return reader_.complain(
          entry, {.got = "is not a known key", .expected = fmt::format("one of {}", fmt::join(kGroupedPasses, ", "))});
    auto which = static_cast<GroupedPass>(pass - kGroupedPasses.begin());
    std::erase_if(machine_.grouped_gemms,
                  [&](const MeasuredGroupedGemm& old) { return old.dtype == type && old.pass == which; });
    auto list = std::get_if<TomlValue::List>(&entry.value.is);
    bool fits = list;
    for (size_t i = 0; fits && i < list->size(); ++i) {
      std::vector<double> n;
      fits = is_list_of((*list)[i], 5, n);
      if (fits) machine_.grouped_gemms.push_back({which, n[0], n[1], n[2], n[3], n[4] / 1e6, type});
    }
    if (!fits)
      reader_.complain(entry, {.got = "got " + shown(entry.value),
                               .expected = "a list of [experts, rows, columns, depth, microseconds]"});
  }

  void read_ops(const TomlEntry& entry, std::string_view key) {
    constexpr size_t kMostSizes = 4;
    if (key.empty() || key.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != key.npos)
      return reader_.complain(entry, {.got = "is not the name of an op"});
    std::vector<MeasuredOp>& measured = machine_.ops[std::string(key)];
    measured.clear();
    auto list = std::get_if<TomlValue::List>(&entry.value.is);
    bool fits = list && !list->empty();
    for (size_t i = 0; fits && i < list->size(); ++i) {
      auto row = std::get_if<TomlValue::List>(&(*list)[i].is);
      std::vector<double> n;
      fits = row && row->size() >= 2 && row->size() <= kMostSizes + 1 && is_list_of((*list)[i], row->size(), n);
      if (fits) measured.push_back({{n.begin(), n.end() - 1}, n.back() / 1e6});
    }
    if (!fits)
      reader_.complain(entry, {.got = "got " + shown(entry.value), .expected = "a list of [sizes…, microseconds]"});
  }

  void read_source(const TomlEntry& entry, std::string_view key) {
    std::vector<Field> fields;
    std::string text;
    for (std::string_view name : kSourced) fields.push_back({std::string(name), TextPlace{&text}});
    reader_.read(entry, key, fields, "source");
    if (!text.empty()) machine_.sources[std::string(key)] = text;
  }

  // After [efficiency], whose values stand for what is not fitted.
  void read_fitted(std::string_view name, std::optional<Efficiencies>& fitted, std::string& on) {
    if (!has(name)) return;
    fitted = machine_.tables;
    std::vector<Field> fields = efficiency_fields(*fitted);
    fields.push_back({"on", TextPlace{&on}});
    for (const TomlEntry& entry : entries_) {
      auto [table, key] = table_and_key(entry.key);
      if (table == name) reader_.read(entry, key, fields, table);
      if (entry.key == name && !std::holds_alternative<TomlValue::Table>(entry.value.is))
        reader_.complain(entry, {.got = "got " + shown(entry.value), .expected = fmt::format("a table, [{}]", name)});
    }
  }

  void require(bool given, std::string_view what) {
    if (!given) reader_.complain({.place = place_, .got = fmt::format("{} is not given", what)});
  }

  void check_complete() {
    const Device& device = machine_.device;
    if (!started_) {
      require(device.units > 0, "device.units");
      require(device.clock_hz > 0, "device.clock_mhz");
      require(device.flops_per_clock_and_unit > 0, "device.flops_per_clock_and_unit");
      require(device.memory_bytes > 0, "device.memory_gb");
      require(device.memory_bytes_per_s > 0, "device.memory_tb_s");
      require(!device.peaks.empty(), "a peak in [device.peak_tflops]");
      for (const auto& [type, rate] : device.gemm_rates)
        require(device.peaks.contains(type),
                fmt::format("device.peak_tflops.{}, of which device.gemm_rate has a share", type));
    }
    // A CPU has its memory under [device], and may have disks alone here.
    const HostMemory& host = machine_.host;
    if (host.link_bytes_per_s > 0 || host.memory_bytes_per_s > 0 || host.memory_bytes > 0) {
      require(host.link_bytes_per_s > 0, "host.link_gb_s");
      require(host.memory_bytes_per_s > 0, "host.memory_gb_s");
      require(host.memory_bytes > 0, "host.memory_gb");
    }
    if (host.nvme_bytes > 0) require(host.nvme_bytes_per_s > 0, "host.nvme_gb_s");
    require(!machine_.levels.empty(), "a level ([level.node], [level.cluster])");
    for (const Level& each : machine_.levels)
      require(each.link.bytes_per_s > 0, fmt::format("level.{}.gb_s", each.name));
    for (size_t l = 0; l < machine_.levels.size(); ++l) check_topology(l);
    for (const auto& [kernel, rate] : machine_.attention)
      require(rate.forward_64 > 0 && rate.forward_128 > 0 && rate.backward_64 > 0 && rate.backward_128 > 0,
              fmt::format("one of forward_64, forward_128, backward_64, backward_128 of attention.{}", kernel));
  }

  std::vector<TomlEntry> entries_;
  std::string place_;
  Base base_;
  FieldReader reader_;
  Machine machine_;
  size_t kind_ = 0;      // of the device, among kDeviceKinds
  size_t topology_ = 0;  // of the level that is read, among kTopologies
  bool started_ = false;
  std::string skipped_;  // one complaint about an unknown table is enough
};

std::string gemms_text(const Machine& machine, std::string_view type) {
  std::string rows;
  for (const MeasuredGemm& p : machine.gemms) {
    if (p.dtype != type) continue;
    rows += fmt::format("  [{}, {}, {}, {}],\n", number_text(p.rows), number_text(p.columns), number_text(p.depth),
                        number_text(p.seconds, 1, 1e6));
  }
  return rows.empty() ? "" : fmt::format("{} = [\n{}]\n", type, rows);
}

std::string grouped_gemms_text(const Machine& machine, std::string_view type) {
  std::string text;
  for (size_t pass = 0; pass < kGroupedPasses.size(); ++pass) {
    std::string rows;
    for (const MeasuredGroupedGemm& g : machine.grouped_gemms)
      if (g.dtype == type && g.pass == static_cast<GroupedPass>(pass))
        rows += fmt::format("  [{}, {}, {}, {}, {}],\n", number_text(g.experts), number_text(g.rows),
                            number_text(g.columns), number_text(g.depth), number_text(g.seconds, 1, 1e6));
    if (!rows.empty()) text += fmt::format("{} = [\n{}]\n", kGroupedPasses[pass], rows);
  }
  return text;
}

std::string ops_text(const Machine& machine) {
  std::string text;
  for (const auto& [name, measured] : machine.ops) {
    text += fmt::format("{} = [\n", name);
    for (const MeasuredOp& op : measured) {
      std::vector<std::string> numbers;
      for (double size : op.size) numbers.push_back(number_text(size));
      numbers.push_back(number_text(op.seconds, 1, 1e6));
      text += fmt::format("  [{}],\n", fmt::join(numbers, ", "));
    }
    text += "]\n";
  }
  return text;
}

}  // namespace

Machine parse_machine(std::string_view text, std::string_view place) {
  return MachineReader(text, place, Base::allowed).read();
}

std::string file_of_this_machine() {
  std::vector<std::filesystem::path> folders = own_machine_folders();
  if (folders.empty())
    throw UserError({.place = std::string(kThisMachine),
                     .got = "neither SEXTANT_MACHINES nor HOME is set",
                     .expected = "SEXTANT_MACHINES, a folder for machines"});
  return (folders.front() / (this_host() + std::string(kEnding))).string();
}

std::string find_machine_file(std::string_view name) {
  if (name == kThisMachine) return find_machine_file(this_host());
  if (name.empty() || name.find_first_of("/\\") != name.npos) return "";
  for (const std::filesystem::path& folder : machine_folders()) {
    std::filesystem::path file = folder / (std::string(name) + std::string(kEnding));
    std::error_code none;
    if (std::filesystem::is_regular_file(file, none)) return file.string();
  }
  return "";
}

std::vector<std::string> known_machines() {
  std::set<std::string> names;
  for (const std::filesystem::path& folder : machine_folders()) {
    std::error_code none;
    for (const auto& file : std::filesystem::directory_iterator(folder, none))
      if (file.path().extension() == kEnding && file.path().stem() != kProfiles)
        names.insert(file.path().stem().string());
  }
  return {names.begin(), names.end()};
}

Machine load_machine(std::string_view name_or_path) {
  if (name_or_path.ends_with(kEnding))
    return parse_machine(read_file(std::filesystem::path(name_or_path)), name_or_path);
  std::string file = name_or_path == kProfiles ? "" : find_machine_file(name_or_path);
  if (file.empty() && name_or_path == kThisMachine)
    throw UserError({.place = std::string(kThisMachine),
                     .got = "this machine has not been measured",
                     .expected = "a machine that is known",
                     .hint = "`sextant bench machine --save here` measures it"});
  if (file.empty()) {
    std::vector<std::string> known = known_machines();
    std::string meant = did_you_mean(name_or_path, known);
    throw UserError({.place = std::string(name_or_path),
                     .got = "is not a known machine",
                     .expected = meant.empty()
                                     ? fmt::format("a file that ends in .toml, or one of {}", fmt::join(known, ", "))
                                     : "a file that ends in .toml, or a name that `sextant list machines` prints",
                     .hint = meant.empty() ? "docs/machines.md shows how to describe your own" : meant});
  }
  return parse_machine(read_file(file), file);
}

std::string machine_text(const Machine& given) {
  Machine machine = given;  // fields point into what may be written
  std::string out = fields_text(top_fields(machine));
  auto table = [&](const std::string& name, const std::string& body) {
    if (!body.empty()) out += fmt::format("\n[{}]\n{}", name, body);
  };
  auto kind = static_cast<size_t>(machine.device.kind);
  table("device", fields_text(device_fields(machine.device, kind)));
  std::string peaks, rates, gemms, sources;
  for (auto& [type, peak] : machine.device.peaks) peaks += fields_text(std::vector{peak_field(type, peak)});
  table("device.peak_tflops", peaks);
  for (auto& [type, rate] : machine.device.gemm_rates) rates += fields_text(std::vector{gemm_rate_field(type, rate)});
  table("device.gemm_rate", rates);
  table("node", fields_text(node_fields(machine)));
  table("host", fields_text(known_host_fields(machine.host)));
  for (Level& level : machine.levels) {
    size_t topology = level.topology.index();
    table("level." + level.name, fields_text(level_fields(level, topology)));
  }
  for (auto& [kernel, rate] : machine.attention) table("attention." + kernel, fields_text(attention_fields(rate)));
  table("efficiency", fields_text(efficiency_fields(machine.tables)));
  auto fitted_table = [&](const char* name, std::optional<Efficiencies>& fitted, std::string& on) {
    if (!fitted) return;
    std::vector<Field> fields = efficiency_fields(*fitted);
    fields.insert(fields.begin(), {"on", TextPlace{&on}});
    table(name, fields_text(fields));
  };
  fitted_table("fitted", machine.fitted, machine.fitted_on);
  fitted_table("fitted_experts", machine.fitted_experts, machine.fitted_experts_on);
  table("run", fields_text(run_fields(machine)));
  for (std::string_view type : kPeakTypes) gemms += gemms_text(machine, type);
  table("products", gemms);
  for (std::string_view type : kPeakTypes)
    table(fmt::format("{}.{}", kGroupedTable, type), grouped_gemms_text(machine, type));
  table("ops", ops_text(machine));
  for (const auto& [name, text] : machine.sources) sources += fmt::format("{} = {}\n", name, toml_quoted(text));
  table("source", sources);
  return out;
}

}  // namespace sextant
