// Results of benchmarks, to print, save, read again and compare. A result is one thing timed many times. A report is
// the results of one command, with the environment they hold for. JSON input is not trusted: reading refuses anything
// that is not a report with a UserError.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/statistics.h"

namespace sextant {

struct BenchResult {
  // "gemm", "grouped gemm", "memory", "launch", "attention", "ops", "sizing", "comm", "storage"
  std::string kind;
  std::string name;             // what was timed: "product", "copy", "attention_backward"
  std::string shape;            // "8192x8192x8192"
  std::string dtype;            // "bf16"
  std::vector<double> size;     // the numbers of the shape
  std::vector<double> samples;  // seconds of single calls
  double flops = 0, bytes = 0;  // of one call
  double peak_share = 0;        // of what the device could do at most; 0: not known
  double error = 0;             // of sampled results, in terms of what rounding allows; below 1 is right

  Summary seconds() const { return summary_of(samples); }
  double flops_per_s() const;  // at the median
  double bytes_per_s() const;
  std::string key() const { return kind + " " + name + " " + shape + " " + dtype; }
  bool operator==(const BenchResult&) const = default;
};

using Environment = std::vector<std::pair<std::string, std::string>>;  // "cpu" -> "Neoverse-V1", in reading order

struct BenchReport {
  Environment environment;
  std::vector<BenchResult> results;
  std::vector<std::string> findings;  // sentences: cliffs, the best shape
  bool interrupted = false;
  bool operator==(const BenchReport&) const = default;
};

std::string report_text(const BenchReport& report);
std::string report_json(const BenchReport& report);
BenchReport parse_report(std::string_view json, std::string_view place);

// One file with the roofline and the curves.
std::string report_html(const BenchReport& report, std::string_view title);

// Differences between two reports beyond noise: results of the same key whose samples differ by Mann–Whitney's test at
// 1 % and whose medians differ by at least `least_change` and by more than single calls do.
struct Change {
  std::string key;
  double before = 0, after = 0;  // median seconds
  double p = 1;
  bool certain = false;
};
struct Comparison {
  std::vector<Change> changes;           // of every key in both, the largest first
  std::vector<std::string> gone, added;  // keys in one only
  std::vector<std::string> environment;  // what differs there: "driver: 580 -> 590"
};
Comparison compare_reports(const BenchReport& before, const BenchReport& after, double least_change = 0.02);
std::string comparison_text(const Comparison& comparison);
std::string comparison_json(const Comparison& comparison);

}  // namespace sextant
