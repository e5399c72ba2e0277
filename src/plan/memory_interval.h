// MemoryInterval: how far the memory that other software was seen to take may lie from our estimate of it. Learned from
// published runs with measured memory (data/held_out_memory.csv, which `validate --hold-out --memory --write`
// makes). Our own memory needs none: it is exact to the byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plan/held_out.h"

namespace sextant {

// Whose errors were taken: those of the software on the device where there are enough, else of the software, else all.
enum class MemoryErrorsOf : uint8_t { software_on_device, software, all };
std::string_view text_of(MemoryErrorsOf of);  // "published runs with this software on this device"

struct MemoryInterval {
  double share = 0;            // of measurements that are expected inside
  double least = 1, most = 1;  // a measurement lies between the estimate times these
  size_t rows = 0;             // learned from
  MemoryErrorsOf of = MemoryErrorsOf::all;

  double low(double estimate) const { return estimate * least; }
  double high(double estimate) const { return estimate * most; }
};

// Estimates of one software are off in one direction, so that quantiles of signed errors are taken: conformal ones, the
// next error counted among them. Among rows of several sources, one counts by the root of its rows.
class MemoryIntervalModel {
 public:
  MemoryIntervalModel() = default;
  explicit MemoryIntervalModel(std::vector<HeldOutError> errors) : errors_(std::move(errors)) {}

  bool empty() const { return errors_.empty(); }
  const std::vector<HeldOutError>& errors() const { return errors_; }
  // `share` lies between these, the rest to equal parts below and above.
  MemoryInterval interval(std::string_view device, std::string_view software, double share) const;
  // Estimates times `most` are not exceeded by `share` of measurements; `least` is 0.
  MemoryInterval upper(std::string_view device, std::string_view software, double share) const;

 private:
  std::vector<HeldOutError> errors_;
};

// Each row by what is learned without it; where too few rows of its software are left, without its whole source.
Coverage memory_coverage(const std::vector<HeldOutError>& errors, double share);
std::string memory_coverage_text(const std::vector<HeldOutError>& errors);

// From the file that comes with the program.
MemoryIntervalModel load_memory_interval_model();

}  // namespace sextant
