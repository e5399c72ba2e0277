// metrics.jsonl: one line per step, in order, each step once. Opening it for a resumed run drops the lines of steps
// that will be run again. Its fields are the declared numbers of a step (step_numbers.def), which docs/metrics.md
// shows.
#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "ckpt/disk.h"
#include "ckpt/still_there.h"
#include "train/step_numbers.h"

namespace sextant {

struct StepMetrics {
  int64_t step = 0;                              // counts from 1
  StepValues values = {};                        // of declared numbers
  std::optional<TensorStatistics> tensors = {};  // of measuring steps

  template <class T>
  T operator[](const TypedStepNumber<T>& of) const {
    return values[of];
  }
  template <class T>
  std::optional<T> find(const TypedStepNumber<T>& of) const {
    return values.find(of);
  }

  bool is_finite() const { return std::isfinite(values[number::loss]) && std::isfinite(values[number::grad_norm]); }
  // By the update itself, on every rank.
  bool is_update_skipped() const {
    double norm = values[number::grad_norm];
    std::optional<double> limit = values.find(number::norm_limit);
    return !std::isfinite(norm) || (limit && norm > *limit);
  }
};

// A field of a line: its name there, what it is measured in, which lines have it, and what it says.
struct MetricField {
  std::string_view name, unit, when, about;
  std::string_view label;  // for people; empty: the name
};

// In the order in which a line has them.
std::vector<MetricField> metric_fields();

class MetricsFile {
 public:
  // `resume_step`: the last step already done; 0 for a new run.
  MetricsFile(std::filesystem::path path, int64_t resume_step);
  bool is_there() const { return is_still_at(file_, path_); }  // false once it has been removed
  void append(const StepMetrics& metrics);  // RunError that says why, where the disk does not take it

 private:
  std::filesystem::path path_;
  Descriptor file_;
};

}  // namespace sextant
