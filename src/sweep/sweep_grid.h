// The runs of a sweep: the product of the values that keys are given, such as optimizer.lr=1e-4,3e-4.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sextant {

struct SweepRun {
  std::string name;                    // "optimizer.lr=1e-4 train.seed=2": what sets it apart, and its directory
  std::vector<std::string> overrides;  // all of them, one value each
  int64_t steps = 0;                   // that it trains; whoever reads its config says it

  bool operator==(const SweepRun&) const = default;
};

// `given` are key=value pairs; a value with commas outside of brackets and quotes is a list of values. UserError for a
// pair that is none, an empty value in a list, a value or a key that stands there twice, and where nothing is varied.
std::vector<SweepRun> sweep_grid(const std::vector<std::string>& given);

}  // namespace sextant
