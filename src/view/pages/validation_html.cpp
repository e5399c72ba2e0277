#include "view/pages/validation_html.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "view/page.h"
#include "view/scatter_svg.h"

namespace sextant {

namespace {

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}
std::string count(size_t n) {
  return fmt::format("{}", n);
}

void answer(Page& page, const ValidationFigures& tables, const ValidationFigures& fitted) {
  const MemoryFigures& memory = fitted.memory;
  std::vector<PageFigure> figures = {
      {percent(fitted.judged_errors.median),
       fmt::format("median error of step time over {} judged runs", fitted.judged_errors.rows)},
      {percent(fitted.judged_errors.p90), "of nine runs in ten the error is smaller"},
      {percent(fitted.median_of_source_medians), "median of the sources' medians"},
      {percent(tables.judged_errors.median), "median error with no fitted figure at all"}};
  if (fitted.pairs.pairs > 0)
    figures.push_back({fmt::format("{} of {}", fitted.pairs.right, fitted.pairs.pairs),
                       "pairs of layouts more than 10 % apart put in the right order"});
  if (memory.rows > 0)
    figures.push_back({percent(memory.median), fmt::format("median error of memory over {} runs", memory.rows)});
  if (memory.out_of_memory > 0)
    figures.push_back({fmt::format("{} of {}", memory.predicted_not_to_fit, memory.out_of_memory),
                       "runs that did not fit, predicted so"});
  page.figures(figures);
}

std::string layout_of(const PublishedRun& run) {
  std::string out;
  for (const MeshAxis& axis : kMeshAxes)
    if (std::optional<int64_t> size = run.size(axis.size); size && *size > 1)
      out += fmt::format(" {}={}", axis.name(), *size);
  return out;
}

std::string title_of(const ValidationRow& row) {
  const PublishedRun& run = row.published;
  return fmt::format("{} line {}: {}, {} × {}{}", run.file, run.line, run.model, run.gpus.value_or(0), run.gpu,
                     layout_of(run));
}

void scatter(Page& page, const Validation& validation) {
  std::vector<ScatterPoint> points;
  for (const ValidationRow& row : validation.rows()) {
    auto measured = row.measured_s;
    if (row.predicted() && measured && row.published.judged())
      points.push_back({.measured = *measured,
                        .predicted = row.predicted_s,
                        .series = row.published.source,
                        .tooltip = title_of(row)});
  }
  page.section("Predicted against measured");
  page.pictures({scatter_svg(points, {.title = "step time of judged runs"}),
                 scatter_svg(points, {.title = "and their errors", .of = ScatterOf::errors})},
                "Judged: dense, graded A, with shape, layout and batch given. Point at a mark for its run.");
}

void breakdown(Page& page, const std::string& what, const std::map<std::string, ErrorSummary>& fitted,
               const std::map<std::string, ErrorSummary>& tables) {
  page.section(fmt::format("Error by {}", what));
  PageTable table{.heads = {{what}, {"runs"}, {"median"}, {"90th"}, {"bias"}, {"median, nothing fitted"}}, .rows = {}};
  for (const auto& [name, s] : fitted) {
    auto before = tables.find(name);
    table.rows.push_back({name, count(s.rows), percent(s.median), percent(s.p90), percent(s.bias),
                          before == tables.end() ? "" : percent(before->second.median)});
  }
  page.table(table);
}

void not_predicted(Page& page, const Validation& validation) {
  std::map<std::string, std::map<std::string, size_t>> reasons;  // and their sources
  for (const ValidationRow& row : validation.rows())
    if (!row.predicted()) ++reasons[row.why_not][row.published.source];
  if (reasons.empty()) return;
  page.section("Runs that are not predicted");
  PageTable table{.heads = {{"why"}, {"runs"}, {"sources", true}}, .rows = {}};
  for (const auto& [why, sources] : reasons) {
    size_t runs = 0;
    std::vector<std::string> names;
    for (const auto& [source, times] : sources) runs += times, names.push_back(fmt::format("{} ({})", source, times));
    constexpr size_t kNamed = 4;
    size_t more = names.size() > kNamed ? names.size() - kNamed : 0;
    names.resize(names.size() - more);
    table.rows.push_back(
        {why, count(runs),
         fmt::format("{}{}", fmt::join(names, "; "), more > 0 ? fmt::format("; and {} more", more) : "")});
  }
  std::stable_sort(table.rows.begin(), table.rows.end(),
                   [](const auto& a, const auto& b) { return std::stoul(a[1]) > std::stoul(b[1]); });
  page.table(table);
}

void assumed(Page& page, const Validation& validation) {
  std::map<std::string, size_t> times;
  for (const ValidationRow& row : validation.rows())
    if (row.predicted())
      for (const std::string& what : row.run.assumed) ++times[what];
  if (times.empty()) return;
  page.section("Assumed where a source is silent");
  PageTable table{.heads = {{"assumed"}, {"runs"}}, .rows = {}};
  for (const auto& [what, runs] : times) table.rows.push_back({what, count(runs)});
  std::stable_sort(table.rows.begin(), table.rows.end(),
                   [](const auto& a, const auto& b) { return std::stoul(a[1]) > std::stoul(b[1]); });
  page.table(table);
}

void every_run(Page& page, const Validation& validation) {
  page.section("Every predicted run");
  PageTable table{
      .heads =
          {{"run"}, {"source", true}, {"software", true}, {"measured"}, {"predicted"}, {"error"}, {"assumed", true}},
      .rows = {}};
  for (const ValidationRow& row : validation.rows()) {
    if (!row.predicted()) continue;
    auto measured = row.measured_s;
    table.rows.push_back({title_of(row), row.published.source, row.run.profile.name,
                          measured ? fmt::format("{:.4g} s", *measured) : "", fmt::format("{:.4g} s", row.predicted_s),
                          measured ? fmt::format("{:+.1f} %", 100 * row.error()) : "",
                          fmt::format("{}", fmt::join(row.run.assumed, ", "))});
  }
  page.folded(fmt::format("{} runs, in the order of the file", table.rows.size()), table);
}

}  // namespace

std::string validation_html(const Validation& validation, const ValidationFigures& tables,
                            const ValidationFigures& fitted, const PageOrigin& origin) {
  Page page("Predictions against published runs");
  page.lead(fmt::format("{} runs; {} can be converted; of the {} judged, {} are predicted.", fitted.rows,
                        fitted.converted, fitted.judged, fitted.judged_converted));
  answer(page, tables, fitted);
  scatter(page, validation);
  breakdown(page, "source", fitted.by_source, tables.by_source);
  breakdown(page, "device", fitted.by_device, tables.by_device);
  breakdown(page, "size", fitted.by_size, tables.by_size);
  not_predicted(page, validation);
  assumed(page, validation);
  every_run(page, validation);
  page.made_by(origin);
  return std::move(page).finish();
}

}  // namespace sextant
