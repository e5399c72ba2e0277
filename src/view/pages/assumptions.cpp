#include "view/pages/assumptions.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/units.h"

namespace sextant {

namespace {

PageTable machine_table(const Machine& m) {
  PageTable table{.heads = {{"figure"}, {"value", true}}, .rows = {}};
  auto add = [&](const std::string& name, std::string value) { table.rows.push_back({name, std::move(value)}); };
  add("device", m.device.name);
  for (const auto& [dtype, peak] : m.device.peaks)
    add("peak, dense " + dtype, fmt::format("{:.4g} TFLOP/s", peak / 1e12));
  add("memory", human(Bytes{static_cast<int64_t>(m.device.memory_bytes)}));
  add("memory bandwidth", fmt::format("{:.4g} TB/s", m.device.memory_bytes_per_s / 1e12));
  add("power of a device with its share of the node",
      m.device.watts > 0 ? fmt::format("{:g} W", m.device.watts) : "not known");
  add("devices in a node", fmt::format("{}", m.devices_per_node));
  for (const Level& level : m.levels)
    add("links inside a " + level.name,
        fmt::format("{:.4g} GB/s each way for a device, {:.3g} µs a hop{}, {}", level.link.bytes_per_s / 1e9,
                    level.link.latency_s * 1e6, level.reduces_in_switch ? ", switches reduce" : "",
                    topology_text(level.topology)));
  add("memory outside our control", human(Bytes{static_cast<int64_t>(m.context_bytes)}));
  if (m.price_per_hour > 0) add("price", fmt::format("${:g} a device-hour", m.price_per_hour));
  if (m.mtbf_hours > 0) add("between failures of a device", fmt::format("{:g} h", m.mtbf_hours));
  return table;
}

PageTable efficiency_table(const Machine& m) {
  PageTable table{.heads = {{"efficiency"}, {"used"}, {"by published tables"}, {"bounds"}}, .rows = {}};
  for (const NamedEfficiency& named : named_efficiencies())
    table.rows.push_back({named.name, fmt::format("{:.4g}", m.efficiency().*named.field),
                          fmt::format("{:.4g}", m.tables.*named.field),
                          fmt::format("{:g} to {:g}", named.bounds.least, named.bounds.most)});
  return table;
}

PageTable source_table(const Machine& m) {
  PageTable table{.heads = {{"figures of"}, {"come from", true}}, .rows = {}};
  for (const auto& [name, source] : m.sources) table.rows.push_back({name, source});
  if (!m.fitted_on.empty()) table.rows.push_back({"fitted efficiencies", m.fitted_on});
  return table;
}

}  // namespace

void assumptions_section(Page& page, const RunPlan& plan, const Machine& machine, const SoftwareProfile* profile) {
  std::string file =
      machine.place.empty() ? machine.name + ".toml" : std::filesystem::path(machine.place).filename().string();
  page.section("What this assumes");
  page.paragraph(
      fmt::format("Machine {}, from machines/{}{}: {}. Change the file, or write your own, to plan for another.",
                  machine.name, file, machine.date.empty() ? "" : " (" + machine.date + ")", machine.about));
  page.table(machine_table(machine));
  page.paragraph(machine.fitted ? "Efficiencies were fitted on measured runs, within their bounds."
                                : "Efficiencies are those of published kernel and collective tables; none was fitted.");
  page.table(efficiency_table(machine));
  page.folded("Sources of these figures", source_table(machine));
  if (!profile) return;
  page.paragraph(fmt::format("Software {}{}{}.", profile->name, profile->about.empty() ? "" : ": " + profile->about,
                             profile->source.empty() ? "" : " (" + profile->source + ")"));
  if (plan.economics && plan.economics->run.device_mtbf_hours <= 0)
    page.paragraph("Failures come at the rate of Llama 3 405B: 419 in 54 days on 16,384 H100s (arXiv:2407.21783).");
}

}  // namespace sextant
