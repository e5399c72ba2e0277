#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "bench/result.h"
#include "view/chart.h"
#include "view/page.h"

namespace sextant {

namespace {

double best_of(const BenchReport& report, double (BenchResult::*rate)() const) {
  double best = 0;
  for (const BenchResult& r : report.results) best = std::max(best, (r.*rate)());
  return best;
}

std::string tooltip(const BenchResult& r) {
  return fmt::format("{} {} {}: {:.4g} GFLOP/s, {:.4g} GB/s", r.name, r.shape, r.dtype, r.flops_per_s() / 1e9,
                     r.bytes_per_s() / 1e9);
}

struct Roofline {
  std::string svg;
  std::string caption;
};

// Streams set the memory's roof: operands that stay in a cache would pass it, and what a GEMM moves says nothing of
// what the memory could. 0: no stream was measured.
double measured_bandwidth(const BenchReport& report) {
  double best = 0;
  for (const BenchResult& r : report.results)
    if (r.kind == "memory") best = std::max(best, r.bytes_per_s());
  return best;
}

// Flops per byte across, flops per second up; under the slope the memory sets the pace, under the roof the units do.
Roofline roofline(const BenchReport& report) {
  double roof = best_of(report, &BenchResult::flops_per_s), slope = measured_bandwidth(report), low = 1e300, high = 0;
  std::map<std::string, ChartSeries> by_kind;
  for (const BenchResult& r : report.results) {
    if (r.flops <= 0 || r.bytes <= 0) continue;
    low = std::min(low, r.flops / r.bytes), high = std::max(high, r.flops / r.bytes);
    ChartSeries& series = by_kind[r.kind];
    series.name = r.kind, series.joined = false;
    series.points.push_back({r.flops / r.bytes, r.flops_per_s(), tooltip(r)});
  }
  if (by_kind.empty()) return {};
  Roofline picture;
  std::vector<ChartSeries> all;
  if (roof > 0 && slope > 0) {
    double ridge = roof / slope;
    all.push_back({"what was reached at most",
                   {{std::min(low, ridge / 2), std::min(low, ridge / 2) * slope, ""},
                    {ridge, roof, ""},
                    {std::max(high, 2 * ridge), roof, ""}},
                   true});
  } else if (roof > 0) {
    all.push_back({"the most flop/s reached", {{low / 2, roof, ""}, {2 * high, roof, ""}}, true});
    picture.caption = "Memory bandwidth not measured, so no memory roof is drawn: run bench memory.";
  }
  for (auto& [kind, series] : by_kind) all.push_back(std::move(series));
  picture.svg = chart_svg(all, {"Roofline", "flops per byte", "flop/s"});
  return picture;
}

// One curve per name and type.
std::string curves(const BenchReport& report, const std::string& kind, const ChartText& text) {
  std::map<std::string, ChartSeries> lines;
  for (const BenchResult& r : report.results) {
    if (r.kind != kind) continue;
    ChartSeries& line = lines[r.name + " " + r.dtype];
    line.name = r.name + " " + r.dtype;
    line.joined = kind != "gemm";
    double x = kind == "gemm"                             ? r.flops
               : r.size.empty()                           ? 0
               : kind == "attention" && r.size.size() > 1 ? r.size[1]
                                                          : r.size[0];
    line.points.push_back({x, kind == "memory" ? r.bytes_per_s() : r.flops_per_s(), tooltip(r)});
  }
  std::vector<ChartSeries> all;
  for (auto& [name, line] : lines) {
    std::sort(line.points.begin(), line.points.end(),
              [](const ChartPoint& a, const ChartPoint& b) { return a.x < b.x; });
    all.push_back(std::move(line));
  }
  return all.empty() ? "" : chart_svg(all, text);
}

// Of each group the bandwidth of its collectives by size; in place where they can be.
std::map<std::string, std::string> comm_curves(const BenchReport& report) {
  std::map<std::string, std::map<std::string, ChartSeries>> in_place, out_of_place;
  for (const BenchResult& r : report.results) {
    size_t over = r.name.find(" place over ");
    if (r.kind != "comm" || over == r.name.npos || r.size.empty()) continue;
    std::string op = r.name.substr(0, r.name.find(' ')), group = r.name.substr(r.name.find(" over ") + 6);
    bool in = r.name.find(" in place ") != r.name.npos;
    ChartSeries& line = (in ? in_place : out_of_place)[group][op];
    line.name = op;
    line.points.push_back({r.size[0], r.bytes_per_s(), tooltip(r)});
  }
  std::map<std::string, std::string> pictures;
  for (auto& [group, lines] : out_of_place) in_place[group].merge(lines);
  for (auto& [group, lines] : in_place) {
    std::vector<ChartSeries> all;
    for (auto& [op, line] : lines) all.push_back(std::move(line));
    pictures[group] = chart_svg(all, {"Collectives and messages by size", "bytes", "bytes/s"});
  }
  return pictures;
}

struct Picture {
  std::string heading, svg, caption = {};
};

PageTable results_table(const BenchReport& report) {
  PageTable table{.heads = {{"what", true},
                            {"shape", true},
                            {"type", true},
                            {"calls"},
                            {"median us"},
                            {"best us"},
                            {"spread %"},
                            {"GFLOP/s"},
                            {"GB/s"}},
                  .rows = {}};
  for (const BenchResult& r : report.results) {
    Summary s = r.seconds();
    table.rows.push_back({r.name, r.shape, r.dtype, std::to_string(s.count), fmt::format("{:.2f}", s.median * 1e6),
                          fmt::format("{:.2f}", s.best * 1e6),
                          s.median > 0 ? fmt::format("{:.1f}", 100 * s.spread / s.median) : "",
                          fmt::format("{:.1f}", r.flops_per_s() / 1e9), fmt::format("{:.1f}", r.bytes_per_s() / 1e9)});
  }
  return table;
}

}  // namespace

std::string report_html(const BenchReport& report, std::string_view title) {
  Page page(title);
  PageTable environment{.heads = {{"environment", true}, {"", true}}, .rows = {}};
  for (const auto& [name, value] : report.environment) environment.rows.push_back({name, value});
  page.table(environment);
  for (const std::string& finding : report.findings) page.paragraph(finding);
  Roofline roof = roofline(report);
  std::vector<Picture> pictures{
      Picture{"Roofline", std::move(roof.svg), std::move(roof.caption)},
      Picture{"GEMMs", curves(report, "gemm", {"GEMMs by size", "flops of the GEMM", "flop/s"})},
      Picture{"Memory", curves(report, "memory", {"Memory by size", "bytes of each array", "bytes/s"})},
      Picture{"Attention", curves(report, "attention", {"Attention by length", "length of the sequence", "flop/s"})},
      Picture{"Sizes", curves(report, "sizing", {"Steps by size", "size", "flop/s"})}};
  for (auto& [group, svg] : comm_curves(report)) pictures.push_back({"Communication over " + group, std::move(svg)});
  for (const Picture& picture : pictures) {
    if (picture.svg.empty()) continue;
    page.section(picture.heading);
    page.picture(picture.svg, picture.caption);
  }
  page.section("Results");
  page.table(results_table(report));
  return std::move(page).finish();
}

}  // namespace sextant
