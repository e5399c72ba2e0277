// The law of expected losses against the runs it was fitted to, and its shape.
#include "propose/expected_loss.h"

#include <gtest/gtest.h>

#include <sstream>
#include <vector>

#include "base/files.h"
#include "checkout.h"

namespace sextant {
namespace {

struct MeasuredRun {
  SmallRun run;
  double bits_per_byte = 0;
};

std::vector<MeasuredRun> measured_runs() {
  std::vector<MeasuredRun> runs;
  std::istringstream table(read_file(std::string(checkout::kSources) + "/data/small_runs.csv"));
  for (std::string line; std::getline(table, line);) {
    if (line.starts_with('#') || line.starts_with("text,")) continue;
    std::istringstream cells(line);
    std::vector<std::string> cell;
    for (std::string each; std::getline(cells, each, ',');) cell.push_back(each);
    runs.push_back({{.parameters = std::stod(cell.at(1)),
                     .trained_bytes = std::stod(cell.at(2)),
                     .unique_bytes = std::stod(cell.at(3))},
                    std::stod(cell.at(4))});
  }
  return runs;
}

TEST(ExpectedLoss, IsThatOfTheRunsItWasFittedTo) {
  std::vector<MeasuredRun> runs = measured_runs();
  EXPECT_GE(runs.size(), 5u);
  for (const MeasuredRun& each : runs)
    EXPECT_NEAR(expected_bits_per_byte(each.run) / each.bits_per_byte, 1, 0.1)
        << each.run.parameters << " parameters, " << each.run.trained_bytes << " bytes";
}

TEST(ExpectedLoss, FallsWithParametersAndText) {
  SmallRun run{.parameters = 1e6, .trained_bytes = 2e6, .unique_bytes = 2e6};
  double before = expected_bits_per_byte(run);
  SmallRun larger = run, longer = run, again = run;
  larger.parameters *= 4;
  longer.trained_bytes = longer.unique_bytes = 8e6;
  again.trained_bytes = 8e6;
  EXPECT_LT(expected_bits_per_byte(larger), before);
  EXPECT_LT(expected_bits_per_byte(longer), expected_bits_per_byte(again));  // new text is worth more
  EXPECT_LT(expected_bits_per_byte(again), before);
  EXPECT_LE(expected_bits_per_byte({}), 8);
  EXPECT_NE(what_it_writes(1), what_it_writes(3));
}

}  // namespace
}  // namespace sextant
