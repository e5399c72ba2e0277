#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "bench/comm/comm.h"
#include "bench/statistics.h"

namespace sextant {

namespace {

std::string microseconds(double seconds) {
  return fmt::format("{:.1f}", seconds * 1e6);
}

std::string row_text(const CommRow& row) {
  Summary s = summary_of(row.seconds);
  return fmt::format("{:<15} {:<4} {:>10} {:>10} {:>10} {:>10} {:>8.3f} {:>8.3f} {:>6} {}\n", bench_name(row.op),
                     row.place == CommPlace::in ? "in" : "out", human(Bytes{static_cast<int64_t>(row.bytes)}),
                     microseconds(s.median), microseconds(quantile_of(row.seconds, 0.95)), microseconds(s.worst),
                     algorithm_bandwidth(row.bytes, s.median) / 1e9,
                     bus_bandwidth(row.op, row.ranks, row.bytes, s.median) / 1e9,
                     row.wrong > 0 ? fmt::format("{:.0f}", row.wrong) : "0",
                     row.waited_for < 0 ? "" : fmt::format("{} ({:.0f} %)", row.waited_for, 100 * row.waited_share));
}

}  // namespace

std::string comm_text(const CommReport& report) {
  std::string text, group;
  for (const CommRow& row : report.rows) {
    if (row.group != group)
      text += fmt::format("{}{}: {} ranks\n{:<15} {:<4} {:>10} {:>10} {:>10} {:>10} {:>8} {:>8} {:>6} {}\n",
                          group.empty() ? "" : "\n", row.group, row.ranks, "", "place", "size", "median µs", "95 % µs",
                          "worst µs", "alg GB/s", "bus GB/s", "wrong", "waited for");
    group = row.group;
    text += row_text(row);
  }
  if (!report.overlap.empty()) text += "\ncommunication beside computing (an all-reduce, and as much arithmetic)\n";
  for (const auto& [name, o] : report.overlap)
    text += fmt::format("  {:<20} {}: alone {} and {} µs, together {} µs: {:.0f} % hidden\n", name,
                        human(Bytes{static_cast<int64_t>(o.bytes)}), microseconds(o.comm_s), microseconds(o.compute_s),
                        microseconds(o.both_s()), 100 * o.hidden());
  if (!report.links.empty()) text += "\n" + links_text(report.links);
  if (!report.findings.empty()) text += "\n";
  for (const std::string& finding : report.findings) text += finding + "\n";
  if (report.interrupted) text += "\nInterrupted: these are the results so far.\n";
  return text;
}

BenchReport bench_report_of(const CommReport& report) {
  BenchReport results{.environment = {}, .results = {}, .findings = report.findings, .interrupted = report.interrupted};
  for (const CommRow& row : report.rows)
    results.results.push_back({.kind = "comm",
                               .name = fmt::format("{} {} over {}", bench_name(row.op),
                                                   row.place == CommPlace::in ? "in place" : "out of place", row.group),
                               .shape = fmt::format("{:.0f}", row.bytes),
                               .dtype = "f32",
                               .size = {row.bytes, static_cast<double>(row.ranks), share_sent(row.op, row.ranks)},
                               .samples = row.seconds,
                               .bytes = row.bytes,
                               .error = row.wrong > 0 ? 2.0 : 0.0});
  for (const RankLink& link : report.links) {
    results.results.push_back({.kind = "comm",
                               .name = fmt::format("latency {}-{}", link.from, link.to),
                               .shape = fmt::format("{:.0f}", kPingBytes),
                               .dtype = "f32",
                               .size = {kPingBytes, 2, 1},
                               .samples = link.pings,
                               .bytes = kPingBytes});
    results.results.push_back({.kind = "comm",
                               .name = fmt::format("link {}-{}", link.from, link.to),
                               .shape = fmt::format("{:.0f}", link.large),
                               .dtype = "f32",
                               .size = {link.large, 2, 1},
                               .samples = link.transfers,
                               .bytes = link.large});
  }
  for (const auto& [name, o] : report.overlap)
    results.results.push_back({.kind = "comm",
                               .name = "all_reduce beside computing over " + name,
                               .shape = fmt::format("{:.0f}", o.bytes),
                               .dtype = "f32",
                               .size = {o.comm_s, o.compute_s, o.hidden()},
                               .samples = o.both,
                               .bytes = o.bytes});
  return results;
}

}  // namespace sextant
