#include "validate/layout_choice_validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/threads.h"
#include "cost/planned_target.h"
#include "plan/foreign_memory.h"
#include "search/layout_limits.h"
#include "search/search_bound.h"

namespace sextant {

namespace {

// Fields that are equal for two rows that differ in layout alone.
std::string group_of(const ValidationRow& row) {
  const PublishedRun& p = row.published;
  const ModelSpec& m = row.run.spec;
  return fmt::format("{}|{}|{}x{}x{}x{}|{}|{}|{}|{}", p.source, row.run.profile.name, m.layers, m.hidden, m.heads,
                     m.vocab, p.gpu, p.gpus.value_or(0), p.batch.value_or(0), p.seq.value_or(0));
}

// One layout of a row's model, predicted as its row is.
struct Priced {
  LayoutChoice choice;
  double seconds = 0;  // 0: it does not fit, or cannot be made
};

// Only what may be faster than the published layout is worth lowering whole.
Priced price(const ValidationRow& row, const LayoutChoice& choice, LayoutBounds& bounds) {
  ForeignRun run = row.run;
  run.config = with_choice(row.run.config, choice);
  try {
    if (bounds.bound(choice, Closeness::coarse).seconds >= row.predicted_s ||
        bounds.bound(choice, Closeness::tight).seconds >= row.predicted_s)
      return {choice};
    LoweredRun lowered = lower_run(run.config, run.spec, planned_target(run.profile));
    if (!fits(foreign_memory(lowered, run.config, run.profile, row.machine), run.profile, row.machine)) return {choice};
    return {choice, simulate_run(lowered, {row.machine, row.machine.efficiency(), run.profile}).seconds};
  } catch (const UserError&) {
    return {choice};
  }
}

}  // namespace

double MeasuredGroup::ratio() const {
  return *chosen->measured_s / *best->measured_s;
}

std::vector<MeasuredGroup> measured_groups(const Validation& validation) {
  constexpr size_t kLeastLayouts = 3;
  std::map<std::string, MeasuredGroup> groups;
  for (const ValidationRow& row : validation.rows()) {
    if (!row.predicted() || !row.measured_s) continue;
    MeasuredGroup& group = groups[group_of(row)];
    ++group.layouts;
    if (!group.chosen) group = {row.published.source, row.published.model, 1, &row, &row};
    if (row.predicted_s < group.chosen->predicted_s) group.chosen = &row;
    if (*row.measured_s < *group.best->measured_s) group.best = &row;
  }
  std::vector<MeasuredGroup> large;
  for (auto& [key, group] : groups)
    if (group.layouts >= kLeastLayouts) large.push_back(std::move(group));
  return large;
}

std::vector<LayoutChoiceResult> layout_choice_results(const Validation& validation) {
  std::vector<LayoutChoiceResult> results;
  ThreadTeam team(core_count());
  for (const ValidationRow& row : validation.rows()) {
    if (!row.predicted() || row.run.profile.searched.empty()) continue;
    LayoutLimits limits(row.run.profile.searched, row.run.profile.name + ".searched");
    std::vector<LayoutChoice> choices = layouts_of({.run = row.run.config,
                                                    .spec = row.run.spec,
                                                    .machine = row.machine,
                                                    .devices = choice_of(row.run.config).devices(),
                                                    .limits = &limits});
    std::vector<Priced> prices(choices.size());
    LayoutBounds bounds({row.run.config, row.run.spec, row.machine, row.run.profile});
    team.parallel_for(static_cast<int64_t>(choices.size()), [&](int64_t i, int) {
      prices[static_cast<size_t>(i)] = price(row, choices[static_cast<size_t>(i)], bounds);
    });
    LayoutChoiceResult result{
        .row = &row, .layouts = choices.size(), .best = choice_of(row.run.config), .best_s = row.predicted_s};
    for (const Priced& each : prices)
      if (each.seconds > 0 && each.seconds < result.best_s) result.best = each.choice, result.best_s = each.seconds;
    results.push_back(result);
  }
  return results;
}

std::string layout_choice_text(const std::vector<MeasuredGroup>& groups,
                               const std::vector<LayoutChoiceResult>& results) {
  auto layout = [](const ValidationRow& row) { return overrides_text(choice_of(row.run.config)); };
  std::string text = "\nour first choice among layouts that were measured: its measured time over the least\n";
  for (const MeasuredGroup& g : groups)
    text += fmt::format("  {:.3f}  {} layouts of {} ({}): {}{}\n", g.ratio(), g.layouts, g.model, g.source,
                        layout(*g.chosen), g.chosen == g.best ? "" : fmt::format("; was fastest: {}", layout(*g.best)));
  if (!results.empty()) text += "\npublished as the best of what was searched: its predicted time over our best\n";
  for (const LayoutChoiceResult& c : results) {
    const PublishedRun& p = c.row->published;
    text += fmt::format("  {:.3f}  {} on {} ({} layouts): {}{}\n", c.ratio(), p.model, p.gpus.value_or(0), c.layouts,
                        layout(*c.row), c.ratio() > 1 ? fmt::format("; ours: {}", overrides_text(c.best)) : "");
  }
  return text;
}

std::string layout_choice_json(const std::vector<MeasuredGroup>& groups,
                               const std::vector<LayoutChoiceResult>& results) {
  nlohmann::ordered_json out = {{"groups", nlohmann::ordered_json::array()},
                                {"cells", nlohmann::ordered_json::array()}};
  for (const MeasuredGroup& g : groups)
    out["groups"].push_back({{"source", g.source},
                             {"model", g.model},
                             {"layouts", g.layouts},
                             {"chosen_line", g.chosen->published.line},
                             {"best_line", g.best->published.line},
                             {"ratio", g.ratio()}});
  for (const LayoutChoiceResult& c : results)
    out["cells"].push_back({{"line", c.row->published.line},
                            {"layouts", c.layouts},
                            {"published_s", c.row->predicted_s},
                            {"best_s", c.best_s},
                            {"best", overrides_text(c.best)},
                            {"ratio", c.ratio()}});
  return out.dump(1) + "\n";
}

}  // namespace sextant
