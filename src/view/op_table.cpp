#include "view/op_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace sextant {

namespace {

constexpr int kNamesOfPart = 3;

// "grad.layers.3.attn.qkv" to "grad.layers.*": numbers tell layers apart, and all of them count as one.
std::string part_of_model(std::string_view path) {
  std::string part;
  for (int names = 0; names < kNamesOfPart && !path.empty(); ++names) {
    std::string_view name = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(path.size(), name.size() + 1));
    bool number = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
    part += (names == 0 ? "" : ".") + std::string(number ? "*" : name);
  }
  return part;
}

std::string percent(double share) {
  return share > 0 ? fmt::format("{:.1f}%", 100 * share) : "-";
}
std::string rate(double amount, double seconds, double unit) {
  return amount > 0 && seconds > 0 ? fmt::format("{:.1f}", amount / seconds / unit) : "-";
}

void print_rows(std::string& out, std::string_view heading, const std::vector<OpRow>& rows, const Ceiling& ceiling) {
  size_t width = heading.size();
  double total = 0;
  for (const OpRow& row : rows) {
    width = std::max(width, row.name.size());
    total += row.seconds;
  }
  auto slow = [](const OpRow& row) { return row.flops < 1e12 * row.seconds; };
  auto [unit, unit_name] =
      std::all_of(rows.begin(), rows.end(), slow) ? std::pair(1e9, "GFLOP/s") : std::pair(1e12, "TFLOP/s");
  fmt::format_to(std::back_inserter(out), "{:<{}}  {:>7}  {:>10}  {:>6}  {:>8}  {:>8}  {:>10}\n", heading, width,
                 "count", "ms", "share", unit_name, "GB/s", "of ceiling");
  for (const OpRow& row : rows)
    fmt::format_to(std::back_inserter(out), "{:<{}}  {:>7}  {:>10.3f}  {:>6}  {:>8}  {:>8}  {:>10}\n", row.name, width,
                   row.count, row.seconds * 1e3, percent(total > 0 ? row.seconds / total : 0),
                   rate(row.flops, row.seconds, unit), rate(static_cast<double>(row.bytes), row.seconds, 1e9),
                   percent(share_of_ceiling(row, ceiling)));
}

double least_seconds(double flops, int64_t bytes, const Ceiling& ceiling) {
  double least = 0;
  if (ceiling.flops_per_s > 0) least = std::max(least, flops / ceiling.flops_per_s);
  if (ceiling.bytes_per_s > 0) least = std::max(least, static_cast<double>(bytes) / ceiling.bytes_per_s);
  return least;
}

}  // namespace

std::vector<OpRow> op_rows(const Trace& trace, GroupBy by) {
  std::map<std::string, OpRow> named;
  for (const Event& event : trace) {
    std::string name = by == GroupBy::kind ? event.name : part_of_model(event.path);
    OpRow& row = named[name];
    row.name = name;
    ++row.count;
    row.seconds += event.end_s - event.start_s;
    row.flops += event.flops;
    row.bytes += event.bytes;
  }
  std::vector<OpRow> rows;
  for (auto& [name, row] : named) rows.push_back(std::move(row));
  std::stable_sort(rows.begin(), rows.end(), [](const OpRow& a, const OpRow& b) { return a.seconds > b.seconds; });
  return rows;
}

double share_of_ceiling(const OpRow& row, const Ceiling& ceiling) {
  return row.seconds > 0 ? least_seconds(row.flops, row.bytes, ceiling) / row.seconds : 0;
}

double floor_seconds(const Trace& trace, const Ceiling& ceiling) {
  double seconds = 0;
  for (const Event& event : trace) seconds += least_seconds(event.flops, event.bytes, ceiling);
  return seconds;
}

std::string op_table(const Trace& trace, const Ceiling& ceiling) {
  std::string out;
  print_rows(out, "op", op_rows(trace, GroupBy::kind), ceiling);
  out += '\n';
  print_rows(out, "part", op_rows(trace, GroupBy::part), ceiling);
  double all = 0, least = floor_seconds(trace, ceiling);
  for (const Event& event : trace) all += event.end_s - event.start_s;
  if (least > 0)
    out += fmt::format("\nall ops: {:.2f} ms; at the ceilings their flops or bytes alone would take {:.2f} ms ({})\n",
                       1e3 * all, 1e3 * least, percent(least / all));
  return out;
}

}  // namespace sextant
