#include "answers/network_effects.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "answers/planned_run.h"
#include "base/error.h"
#include "base/units.h"
#include "cost/collective.h"
#include "plan/machine_target.h"
#include "plan/predict.h"
#include "plan/run_plan.h"

namespace sextant {

namespace {

// Axes that are moved together: those that one key of the config is split into lie next to each other.
using AxisBlock = std::vector<std::string>;

// The nearest first, as the mesh has them.
std::vector<AxisBlock> blocks_of(const Mesh& mesh) {
  std::vector<AxisBlock> blocks;
  std::vector<AxisRole> roles;
  for (int axis = mesh.axis_count(); axis-- > 0;) {
    if (mesh.size(axis) < 2) continue;
    auto known = std::ranges::find(roles, mesh.role(axis));
    if (known == roles.end()) {
      roles.push_back(mesh.role(axis));
      blocks.push_back({mesh.name(axis)});
    } else {
      blocks[static_cast<size_t>(known - roles.begin())].push_back(mesh.name(axis));
    }
  }
  return blocks;
}

AxisOnNetwork axis_on(const Machine& machine, const Mesh& mesh, const std::string& axis) {
  GroupPlace place = place_group(machine, group_of(mesh, 0, std::vector<std::string>{axis}));
  return {.axis = axis,
          .ranks = place.ranks,
          .in_node = place.inside.front(),
          .level = machine.levels[static_cast<size_t>(place.level)].name,
          .ring_bytes_per_s = group_bandwidth(machine, machine.efficiency(), place)};
}

// The outermost level with messages: that of all ranks together.
size_t levels_used(const Machine& machine, int64_t ranks) {
  size_t used = 1;
  while (used < machine.levels.size() && machine.levels[used - 1].devices > 0 &&
         machine.levels[used - 1].devices < ranks)
    ++used;
  return used;
}

class NetworkTrial {
 public:
  NetworkTrial(const NetworkQuestion& question, const LoweredRun& lowered, const Machine& machine)
      : question_(question), lowered_(lowered), machine_(machine) {}

  std::vector<NetworkRow> placements() const {
    std::vector<AxisBlock> blocks = blocks_of(lowered_.shape.mesh);
    std::vector<size_t> order(blocks.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::vector<NetworkRow> rows;
    while (std::ranges::next_permutation(order).found) {
      AxisBlock nearest_first;
      for (size_t block : order) nearest_first.insert(nearest_first.end(), blocks[block].begin(), blocks[block].end());
      NetworkRow row{.what = fmt::format("{}", fmt::join(nearest_first, " "))};
      question_.place.say("ranks along " + row.what);
      row.step_s = seconds(machine_, RankPlacement(std::move(nearest_first)));
      rows.push_back(std::move(row));
    }
    std::ranges::stable_sort(rows, {}, &NetworkRow::step_s);
    return rows;
  }

  // One link slows all groups that it carries, and everybody waits for those: the step is that of a machine all of
  // whose links of the level are as slow.
  std::vector<NetworkRow> slow_links() const {
    std::vector<NetworkRow> rows;
    for (size_t l = 0; l < levels_used(machine_, lowered_.shape.mesh.world_size()); ++l)
      for (double share : question_.slow_links) {
        Machine slow = machine_;
        slow.levels[l].link.bytes_per_s *= share;
        question_.place.say("a slow link of a " + slow.levels[l].name);
        rows.push_back({.what = slow.levels[l].name, .rate_share = share, .step_s = seconds(slow, {})});
      }
    return rows;
  }

 private:
  double seconds(const Machine& machine, RankPlacement placement) const {
    return simulate_run(lowered_, {.machine = machine,
                                   .efficiency = machine.efficiency(),
                                   .profile = question_.place.profile,
                                   .placement = std::move(placement)})
        .seconds;
  }

  const NetworkQuestion& question_;
  const LoweredRun& lowered_;
  const Machine& machine_;
};

std::string text_of_change(double before, double now) {
  return fmt::format("{:+.1f} %", 100 * (now / before - 1));
}

}  // namespace

NetworkEffects network_effects(const NetworkQuestion& question) {
  const AskedRun& asked = question.asked;
  Machine machine = asked.spec.experts ? with_experts(question.place.machine) : question.place.machine;
  const SoftwareProfile& profile = question.place.profile;
  int ranks = run_shape(asked.run, asked.spec).mesh.world_size();
  if (ranks < 2)
    throw UserError({.place = "ask network", .got = "the run has one rank", .expected = "a mesh of two ranks or more"});
  LoweredRun lowered =
      lower_run(asked.run, asked.spec,
                machine_target({.run = asked.run, .ranks = ranks, .machine = machine, .profile = profile}));
  RunPlan plan = make_plan({.run = asked.run, .lowered = lowered, .machine = &machine, .profile = &profile});
  if (!plan.step)
    throw DoesNotFit({.place = "ask network",
                      .got = fmt::format("{} does not fit {}", plan.mesh, plan.device),
                      .expected = "a layout that fits",
                      .hint = "sextant plan CONFIG --machine NAME tells what would"});
  NetworkTrial trial(question, lowered, machine);
  NetworkEffects answer{.model = asked.name,
                        .machine = machine.name,
                        .device = machine.device.name,
                        .mesh = plan.mesh,
                        .profile = profile.name,
                        .devices = ranks,
                        .step_s = plan.step->seconds,
                        .axes = {},
                        .placements = trial.placements(),
                        .slow_links = trial.slow_links()};
  for (const AxisBlock& block : blocks_of(lowered.shape.mesh))
    for (const std::string& axis : block) answer.axes.push_back(axis_on(machine, lowered.shape.mesh, axis));
  return answer;
}

std::string network_effects_text(const NetworkEffects& answer) {
  std::string out = fmt::format("{} on {} x {} ({}), {}: {} a step\n\n", answer.model, answer.devices, answer.device,
                                answer.machine, answer.mesh, short_seconds(answer.step_s));
  out += fmt::format("{:<12} {:>8} {:>10} {:>10} {:>16}\n", "axis", "ranks", "in a node", "within a", "GB/s of a rank");
  for (const AxisOnNetwork& axis : answer.axes)
    out += fmt::format("{:<12} {:>8} {:>10} {:>10} {:>16.4g}\n", axis.axis, axis.ranks, axis.in_node, axis.level,
                       axis.ring_bytes_per_s / 1e9);
  auto table = [&](const std::string& head, const std::vector<NetworkRow>& rows, const auto& name) {
    if (rows.empty()) return;
    out += fmt::format("\n{:<40} {:>10}\n", head, "step");
    for (const NetworkRow& row : rows)
      out += fmt::format("{:<40} {:>10} {:>10}\n", name(row), short_seconds(row.step_s),
                         text_of_change(answer.step_s, row.step_s));
  };
  table("ranks placed otherwise, nearest first", answer.placements, [](const NetworkRow& row) { return row.what; });
  table("one link slower", answer.slow_links,
        [](const NetworkRow& row) { return fmt::format("{}, at {:g} of its rate", row.what, row.rate_share); });
  return out;
}

nlohmann::ordered_json network_effects_json(const NetworkEffects& answer) {
  nlohmann::ordered_json axes = nlohmann::ordered_json::array(), placements = axes, slow = axes;
  for (const AxisOnNetwork& axis : answer.axes)
    axes.push_back({{"axis", axis.axis},
                    {"ranks", axis.ranks},
                    {"in_node", axis.in_node},
                    {"level", axis.level},
                    {"ring_bytes_per_s", axis.ring_bytes_per_s}});
  for (const NetworkRow& row : answer.placements)
    placements.push_back({{"nearest_first", row.what}, {"step_s", row.step_s}});
  for (const NetworkRow& row : answer.slow_links)
    slow.push_back({{"level", row.what}, {"rate_share", row.rate_share}, {"step_s", row.step_s}});
  return {{"model", answer.model},        {"machine", answer.machine}, {"device", answer.device},
          {"software", answer.profile},   {"devices", answer.devices}, {"mesh", answer.mesh},
          {"step_s", answer.step_s},      {"axes", std::move(axes)},   {"placements", std::move(placements)},
          {"slow_links", std::move(slow)}};
}

}  // namespace sextant
