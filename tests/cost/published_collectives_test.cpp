// Bus bandwidths that others measured with nccl-tests, beside those of machine files with efficiencies from published
// tables. None of them was fitted.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "base/csv.h"
#include "base/files.h"
#include "checkout.h"
#include "cost/collective.h"
#include "cost/machine_file.h"

namespace sextant {
namespace {

struct PublishedCollective {
  std::string what;
  Machine machine;
  int64_t devices = 0;
  Collective kind = Collective::all_reduce;
  double bytes = 0, measured = 0;  // bytes per second, as nccl-tests count bus bandwidth
};

std::vector<PublishedCollective> published_collectives() {
  std::filesystem::path file = std::filesystem::path(checkout::kSources) / "data" / "collectives.csv";
  CsvTable table = parse_csv(read_file(file), "collectives.csv");
  std::vector<PublishedCollective> rows;
  for (const CsvRow& row : table.rows) {
    auto text = [&](const char* name) { return row.fields.at(static_cast<size_t>(table.column(name))); };
    PublishedCollective one{
        .what = fmt::format("{} {} {} {}", text("machine"), text("devices"), text("collective"), text("bytes")),
        .machine = load_machine(text("machine"))};
    one.devices = std::stoll(text("devices"));
    one.bytes = std::stod(text("bytes")), one.measured = std::stod(text("busbw_gb_s")) * 1e9;
    if (std::string node = text("node_gb_s"); !node.empty())
      one.machine.levels.back().link.bytes_per_s =
          std::stod(node) * 1e9 / static_cast<double>(one.machine.devices_per_node);
    if (std::string innermost = text("innermost_devices"); !innermost.empty())
      one.machine.levels.front().devices = std::stoll(innermost);
    if (text("collective") == "all_gather") one.kind = Collective::all_gather;
    if (text("collective") == "all_to_all") one.kind = Collective::all_to_all;
    rows.push_back(std::move(one));
  }
  return rows;
}

double predicted_bus_bandwidth(const PublishedCollective& row) {
  std::vector<int> ranks(static_cast<size_t>(row.devices));
  std::iota(ranks.begin(), ranks.end(), 0);
  double n = static_cast<double>(row.devices), times = row.kind == Collective::all_reduce ? 2 : 1;
  return times * row.bytes * (n - 1) / n /
         collective_seconds(row.machine, row.machine.tables, row.kind, row.bytes, place_group(row.machine, ranks));
}

TEST(PublishedCollectives, BusBandwidthsOfNcclTests) {
  std::vector<PublishedCollective> rows = published_collectives();
  ASSERT_GE(rows.size(), 12u);
  std::vector<double> errors;
  std::string page = read_file(std::filesystem::path(checkout::kSources) / "docs" / "networks.md");
  for (const PublishedCollective& row : rows) {
    double predicted = predicted_bus_bandwidth(row);
    errors.push_back(std::abs(predicted / row.measured - 1));
    EXPECT_LT(errors.back(), 0.3) << row.what << ": " << predicted / 1e9 << " of " << row.measured / 1e9;
    // The page shows what is predicted now.
    std::string cells = fmt::format("| {:.4g} | {:.0f} |", row.measured / 1e9, predicted / 1e9);
    EXPECT_NE(page.find(cells), page.npos) << row.what << " " << cells;
  }
  std::ranges::sort(errors);
  EXPECT_LT(errors[errors.size() / 2], 0.08);
}

}  // namespace
}  // namespace sextant
