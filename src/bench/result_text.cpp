#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/result.h"

namespace sextant {

namespace {

std::string time_text(double seconds) {
  if (seconds >= 1) return fmt::format("{:.3f} s", seconds);
  return seconds >= 1e-3 ? fmt::format("{:.3f} ms", seconds * 1e3) : fmt::format("{:.2f} us", seconds * 1e6);
}

std::string flop_text(double rate) {
  return rate >= 1e12 ? fmt::format("{:.1f} TFLOP/s", rate / 1e12) : fmt::format("{:.1f} GFLOP/s", rate / 1e9);
}

std::string rate_text(const BenchResult& result) {
  // A kernel below 2 flops per byte is limited by bandwidth, so its rate is in GB/s; a GEMM's rate is in FLOP/s.
  bool streams = result.flops == 0 || (result.bytes > 0 && result.flops / result.bytes < 2);
  return streams ? fmt::format("{:.1f} GB/s", result.bytes_per_s() / 1e9) : flop_text(result.flops_per_s());
}

std::vector<std::string> row_of(const BenchResult& result) {
  Summary s = result.seconds();
  return {result.name,
          result.shape,
          result.dtype,
          fmt::format("{}", s.count),
          time_text(s.mean),
          time_text(s.median),
          time_text(s.best),
          s.median > 0 ? fmt::format("{:.1f} %", 100 * s.spread / s.median) : "",
          rate_text(result),
          result.peak_share > 0 ? fmt::format("{:.1f} %", 100 * result.peak_share) : "",
          result.error > 1 ? "WRONG" : ""};
}

}  // namespace

double BenchResult::flops_per_s() const {
  double median = seconds().median;
  return median > 0 ? flops / median : 0;
}

double BenchResult::bytes_per_s() const {
  double median = seconds().median;
  return median > 0 ? bytes / median : 0;
}

std::string report_text(const BenchReport& report) {
  std::string text;
  for (const auto& [name, value] : report.environment) text += fmt::format("{}: {}\n", name, value);
  std::vector<std::vector<std::string>> rows{
      {"what", "shape", "type", "calls", "mean", "median", "best", "spread", "rate", "of peak", ""}};
  for (const BenchResult& result : report.results) rows.push_back(row_of(result));
  std::vector<size_t> widths(rows[0].size());
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  if (rows.size() > 1) text += "\n";
  for (const auto& row : rows) {
    if (rows.size() == 1) break;
    std::string line;
    for (size_t i = 0; i < row.size(); ++i)
      line += i < 3 ? fmt::format("{:<{}}  ", row[i], widths[i]) : fmt::format("{:>{}}  ", row[i], widths[i]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  if (!report.findings.empty()) text += "\n";
  for (const std::string& finding : report.findings) text += finding + "\n";
  if (report.interrupted) text += "\nInterrupted: these are the results so far.\n";
  return text;
}

Comparison compare_reports(const BenchReport& before, const BenchReport& after, double least_change) {
  constexpr double kChance = 0.01;
  Comparison comparison;
  auto find = [](const BenchReport& report, const std::string& key) {
    return std::find_if(report.results.begin(), report.results.end(),
                        [&](const BenchResult& r) { return r.key() == key; });
  };
  for (const BenchResult& old : before.results) {
    auto now = find(after, old.key());
    if (now == after.results.end()) {
      comparison.gone.push_back(old.key());
      continue;
    }
    Change change{.key = old.key(),
                  .before = old.seconds().median,
                  .after = now->seconds().median,
                  .p = mann_whitney_p(old.samples, now->samples)};
    // Calls of one run are more alike than those of two: a change must also stand out of what calls differ by.
    double noise = std::max({least_change * change.before, old.seconds().spread, now->seconds().spread});
    change.certain = change.p < kChance && std::abs(change.after - change.before) >= noise;
    comparison.changes.push_back(change);
  }
  for (const BenchResult& now : after.results)
    if (find(before, now.key()) == before.results.end()) comparison.added.push_back(now.key());
  auto size = [](const Change& c) { return c.before > 0 && c.after > 0 ? std::abs(std::log(c.after / c.before)) : 0; };
  std::stable_sort(comparison.changes.begin(), comparison.changes.end(), [&](const Change& a, const Change& b) {
    return a.certain != b.certain ? a.certain : size(a) > size(b);
  });
  for (const auto& [name, value] : before.environment)
    for (const auto& [other, later] : after.environment)
      if (name == other && value != later)
        comparison.environment.push_back(fmt::format("{}: {} -> {}", name, value, later));
  return comparison;
}

std::string comparison_text(const Comparison& comparison) {
  std::string text;
  size_t same = 0;
  for (const Change& change : comparison.changes) {
    if (!change.certain) {
      ++same;
      continue;
    }
    double ratio = change.before > 0 ? change.after / change.before : 1;
    text += fmt::format("{}: {} -> {}, {:.1f} % {} (p = {:.1g})\n", change.key, time_text(change.before),
                        time_text(change.after), 100 * std::abs(ratio - 1), ratio > 1 ? "slower" : "faster", change.p);
  }
  text += fmt::format("{} of {} results changed beyond noise, {} did not\n", comparison.changes.size() - same,
                      comparison.changes.size(), same);
  for (const std::string& key : comparison.gone) text += fmt::format("only in the first: {}\n", key);
  for (const std::string& key : comparison.added) text += fmt::format("only in the second: {}\n", key);
  for (const std::string& line : comparison.environment) text += fmt::format("environment: {}\n", line);
  return text;
}

}  // namespace sextant
