#include "view/pages/plan_explorer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "base/units.h"
#include "plan/step_memory.h"
#include "view/memory_svg.h"
#include "view/pages/explorer_script.h"
#include "view/pages/plan_figures.h"
#include "view/pages/plan_pictures.h"
#include "view/sim_timeline_svg.h"
#include "view/svg.h"
#include "view/trace_blocks.h"

namespace sextant {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kTimeResolution = 4000;  // parts of a step
constexpr size_t kExplorerStages = 8;  // of more, the first and the last two are drawn
constexpr size_t kLastStages = 2;
constexpr size_t kExplorerBlocks = 100;  // of a row
constexpr size_t kExplorerColumns = 160;
constexpr double kMemoryResolution = 2000;
constexpr size_t kNamedPhases = 8;  // where a step has more, they are not named below the picture

Json json_of_table(const PageTable& table) {
  Json heads = Json::array();
  for (const PageTable::Head& head : table.heads) heads.push_back(head.name);
  return {{"heads", heads}, {"rows", table.rows}, {"total_rows", table.total_rows}};
}

Json json_of_figures(const RunPlan& plan) {
  Json figures = Json::array();
  for (const PageFigure& figure : plan_figures(plan))
    figures.push_back({figure.value, figure.meaning,
                       figure.mood == Mood::good  ? "good"
                       : figure.mood == Mood::bad ? "bad"
                                                  : ""});
  return figures;
}

Json json_of_block(const TraceBlock& block, double end_s) {
  auto parts = [&](double seconds) { return std::lround(seconds / end_s * kTimeResolution); };
  Json json{parts(block.start_s), std::max(1l, parts(block.length()))};
  for (size_t kind = 0; kind < block.seconds.size(); ++kind) {
    long share = std::lround(100 * block.seconds[kind] / std::max(block.length(), 1e-12));
    if (share > 0) json.push_back(kind), json.push_back(std::min(share, 100l));
  }
  return json;
}

// Stages that are not drawn: between the first and the last of them.
std::set<int> stages_left_out(const Trace& trace) {
  std::set<int> stages;
  for (const Event& event : trace)
    if (stages.empty() || event.rank != *stages.rbegin()) stages.insert(event.rank);
  if (stages.size() <= kExplorerStages) return {};
  return {std::next(stages.begin(), kExplorerStages - kLastStages), std::prev(stages.end(), kLastStages)};
}

Json json_of_timeline(const Trace& trace) {
  std::set<int> left_out = stages_left_out(trace);
  Trace some;
  if (!left_out.empty())
    std::ranges::copy_if(trace, std::back_inserter(some),
                         [&](const Event& event) { return !left_out.contains(event.rank); });
  TraceBlocks blocks = cut_into_blocks(
      left_out.empty() ? trace : some,
      {.per_lane = kExplorerBlocks, .in_all = 2 * kExplorerBlocks * kExplorerStages, .finest = BlockOf::microbatch});
  Json kinds = Json::array(), rows = Json::array();
  for (size_t kind = 0; kind < blocks.kinds.size(); ++kind)
    kinds.push_back({blocks.kinds[kind].name, timeline_colour(blocks.kinds, kind)});
  for (const TraceLane& lane : blocks.lanes) {
    Json row{{"rank", lane.rank}, {"compute", lane.lane == "compute"}, {"blocks", Json::array()}};
    for (const TraceBlock& block : lane.blocks) row["blocks"].push_back(json_of_block(block, blocks.end_s));
    rows.push_back(std::move(row));
  }
  return {{"end_s", blocks.end_s}, {"kinds", kinds}, {"rows", rows}, {"left_out", left_out.size()}};
}

// Memory of the fullest device: stacked from below, one number where it does not change.
Json json_of_memory(const RunPlan& plan, const LoweredRun& lowered) {
  const RankClass& fullest = fullest_class(plan);
  auto at = static_cast<size_t>(&fullest - plan.classes.data());
  std::vector<MemoryPoint> points;
  for (MemoryMoment& moment : step_moments(lowered.programs.train[at], kExplorerColumns))
    points.push_back(memory_point(std::move(moment)));
  int64_t most = 1;
  for (const MemoryPoint& point : points) most = std::max(most, point.total());
  double unit = static_cast<double>(most + fullest.memory.overhead) / kMemoryResolution;
  auto units = [&](int64_t bytes) { return std::lround(static_cast<double>(bytes) / unit); };
  Json parts = Json::array(), phases = Json::array();
  if (fullest.memory.overhead > 0)
    parts.push_back({"driver, libraries", kOutsideColour, units(fullest.memory.overhead)});
  for (size_t use = 0; use < kMemoryUses; ++use) {
    std::vector<long> values;
    for (const MemoryPoint& point : points) values.push_back(units(point.bytes[use]));
    if (std::ranges::all_of(values, [](long value) { return value == 0; })) continue;
    bool constant = std::ranges::all_of(values, [&](long value) { return value == values.front(); });
    parts.push_back({name_of(static_cast<MemoryUse>(use)), colour_of(static_cast<MemoryUse>(use)),
                     constant ? Json(values.front()) : Json(values)});
  }
  for (const MemoryPoint& point : points)
    if (phases.empty() || phases.back()[0] != point.phase)
      phases.push_back({point.phase, 1});
    else
      phases.back()[1] = phases.back()[1].get<int>() + 1;
  if (phases.size() > kNamedPhases) phases = Json::array();
  return {{"columns", points.size()},
          {"unit", unit},
          {"parts", parts},
          {"phases", phases},
          {"allocated", fullest.memory.total()},
          {"peak", most + fullest.memory.overhead},
          {"limit", plan.device_bytes ? Json(*plan.device_bytes) : Json(0)},
          {"caption", fmt::format("What lies in memory op by op, in the order in which they run; fullest in {}, at {}. "
                                  "Gaps between buffers are not drawn.",
                                  name_of(fullest.peak_in), fullest.peak_at)}};
}

// Safe inside a script element of HTML, and of XML.
std::string script_text(std::string json) {
  std::string safe;
  for (char c : json)
    if (c == '<' || c == '>' || c == '&')
      safe += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      safe += c;
  return safe;
}

bool numbers_only(const GridAxis& axis) {
  return std::ranges::all_of(axis.values, [](const std::string& value) {
    return !value.empty() && std::ranges::all_of(value, [](char c) { return c >= '0' && c <= '9'; });
  });
}

std::string title_of(const std::string& axis) {
  if (axis == "batch.sequences") return "batch (sequences)";
  if (axis == "batch.seq") return "context (tokens)";
  return axis;
}

}  // namespace

std::string PlanExplorer::entry_of(const GridPlan& planned) {
  const RunPlan& plan = planned.plan;
  Json shown{{"figures", json_of_figures(plan)},
             {"step_table", plan.step ? json_of_table(step_table(plan)) : Json()},
             {"memory_table", json_of_table(fullest_table(plan))},
             {"timeline", planned.trace.empty() ? Json() : json_of_timeline(planned.trace)},
             {"memory", json_of_memory(plan, planned.lowered)}};
  Json entry{{"plan", Json::parse(plan_json(plan))}, {"shown", std::move(shown)}};
  return entry.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string PlanExplorer::controls() const {
  std::string html = "<div class=\"controls\">\n";
  for (size_t i = 0; i < grid_.axes.size(); ++i) {
    const GridAxis& axis = grid_.axes[i];
    if (numbers_only(axis)) {
      html += fmt::format(
          "<label for=\"axis-{0}\"><span>{1}</span><output id=\"axis-{0}-value\" for=\"axis-{0}\">{2}</output><input "
          "id=\"axis-{0}\" type=\"range\" min=\"0\" max=\"{3}\" step=\"1\" value=\"{4}\"/></label>\n",
          i, escaped(title_of(axis.name)), axis.values[axis.chosen], axis.values.size() - 1, axis.chosen);
      continue;
    }
    html += fmt::format("<label for=\"axis-{0}\"><span>{1}</span><select id=\"axis-{0}\">", i, escaped(axis.name));
    for (size_t v = 0; v < axis.values.size(); ++v)
      html += fmt::format("<option value=\"{}\"{}>{}</option>", v, v == axis.chosen ? " selected=\"selected\"" : "",
                          escaped(axis.values[v]));
    html += "</select></label>\n";
  }
  return html + "<button type=\"button\" id=\"as-in-config\">as in the config</button>\n</div>\n";
}

std::string PlanExplorer::data(const PointCommand& command) const {
  Json head{{"resolution", kTimeResolution},
            {"command", command.before},
            {"options", command.behind},
            {"axes", Json::array()}};
  for (const GridAxis& axis : grid_.axes)
    head["axes"].push_back({{"name", axis.name}, {"values", axis.values}, {"chosen", axis.chosen}});
  std::string text = head.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.back() = ',';
  text += "\"points\":[";
  for (size_t i = 0; i < grid_.points.size(); ++i) {
    const GridPoint& point = grid_.points[i];
    Json rest{{"overrides", point.overrides}, {"why_not", point.why_not}};
    std::string own = rest.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (!entries_[i].empty()) own = own.substr(0, own.size() - 1) + "," + entries_[i].substr(1);
    text += (i > 0 ? ",\n" : "\n") + own;
  }
  return script_text(text + "]}");
}

ExplorerHtml PlanExplorer::html(const PointCommand& command) const {
  auto none = static_cast<size_t>(
      std::ranges::count_if(grid_.points, [](const GridPoint& point) { return !point.why_not.empty(); }));
  std::string refused = none > 0 ? fmt::format("; {} more combinations are refused, and say why", none) : "";
  return {.before = fmt::format("<style>{}</style>\n{}", explorer_style(), picture_style()) +
                    fmt::format("<p>{} plans{}. The command of the chosen one stands below it.</p>\n",
                                grid_.points.size() - none, refused) +
                    controls() +
                    "<noscript><p>The sliders need JavaScript. The plan of the config stands below in "
                    "full.</p></noscript>\n<div class=\"chosen\">\n<p id=\"chosen-why\"></p>\n",
          .behind =
              "<figure id=\"chosen-step\"></figure>\n<figure id=\"chosen-memory\"></figure>\n<div class=\"pair\" "
              "id=\"chosen-tables\"></div>\n<p><code id=\"chosen-command\"></code></p>\n</div>\n" +
              fmt::format("<script type=\"application/json\" id=\"plans\">{}</script>\n<script>{}</script>\n",
                          data(command), explorer_script())};
}

}  // namespace sextant
