// PredictionInterval: how far a measurement may lie from a prediction. Learned from published runs, each predicted by a
// fit that had not seen its source (data/held_out.csv, which `validate --hold-out --write` makes).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exec/sim/simulate.h"
#include "plan/held_out.h"
#include "plan/memory_interval.h"

namespace sextant {

std::string size_class(double parameters);
std::string models_word(bool experts);
// "compute", unless messages, other stages or the host are waited for more than a fifth of the step: then what is
// waited for longest.
std::string dominated_by(const SimResult& result);

struct PredictionInterval {
  double share = 0;        // of measurements that are expected inside
  double log_half = 0;     // a measurement lies within predicted · exp(± this)
  size_t rows = 0;         // learned from
  size_t of_device = 0;    // of those, on this device
  size_t of_software = 0;  // of those, with this software

  double low(double predicted) const;
  double high(double predicted) const;
  // Whether two predictions are nearer to each other than a prediction is known.
  bool equal(double a, double b) const;
};

constexpr double kIntervalShare = 0.8;

// An end of an interval, with as many digits as it deserves: "5.3", "27000".
std::string two_digits(double end);

// An error over what is usual by the other sources.
struct ErrorScore {
  double value = 0, weight = 0;
};

// A conformal interval: the quantile of errors over what errors of that kind usually are. What is usual is the mean of
// all, times how much larger the errors of each trait are, drawn to 1 where few rows have it.
class IntervalModel {
 public:
  explicit IntervalModel(std::vector<HeldOutError> errors, MemoryIntervalModel memory = {});

  PredictionInterval interval(const RunTraits& traits, double share = kIntervalShare) const;
  const std::vector<HeldOutError>& errors() const { return errors_; }
  bool empty() const { return errors_.empty(); }  // there is nothing to learn from
  // Of the memory of other software.
  const MemoryIntervalModel& memory() const { return memory_; }

 private:
  std::vector<HeldOutError> errors_;
  std::vector<ErrorScore> scores_;
  MemoryIntervalModel memory_;
};

// By the interval learned from all sources but a row's own.
Coverage coverage_of(const std::vector<HeldOutError>& errors, double share);
// The same for several shares, as lines.
std::string coverage_text(const std::vector<HeldOutError>& errors);

// From the files that come with the program.
IntervalModel load_interval_model();

}  // namespace sextant
