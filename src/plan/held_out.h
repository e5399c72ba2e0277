// HeldOutError: how far a prediction of a published run was off that had not seen the run's source, with what such
// errors are grouped by. Intervals of predictions are learned from tables of them (data/held_out.csv,
// data/held_out_memory.csv).
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sextant {

// Traits of a run by which errors are grouped.
struct RunTraits {
  std::string device;     // the machine whose fitted efficiencies count
  std::string software;   // profile
  std::string models;     // "dense" or "experts"
  std::string size;       // by parameters
  std::string dominated;  // where the step goes; of memory, what takes most of it
  bool operator==(const RunTraits&) const = default;
};

struct RunTrait {
  std::string_view name;  // of its column
  std::string RunTraits::*field;
};
inline constexpr std::array kRunTraits{RunTrait{"device", &RunTraits::device},
                                       RunTrait{"software", &RunTraits::software},
                                       RunTrait{"models", &RunTraits::models}, RunTrait{"size", &RunTraits::size},
                                       RunTrait{"dominated", &RunTraits::dominated}};

struct HeldOutError {
  std::string source;
  RunTraits traits;
  double log_error = 0;  // of predicted over measured
};

std::string held_out_csv(std::span<const HeldOutError> errors);
// UserError for what is no such table.
std::vector<HeldOutError> parse_held_out(std::string_view text, std::string_view place);

// The share of rows that fall into an interval that was learned without them, and the median of these intervals as the
// logarithm of a factor to both sides.
struct Coverage {
  size_t rows = 0, inside = 0;
  double median_log_half = 0;
  double share() const { return rows > 0 ? static_cast<double>(inside) / static_cast<double>(rows) : 0; }
};
std::string text_of(const Coverage& coverage, double share);  // a line: what an interval of this share held

// Of a table that comes with the program.
std::vector<HeldOutError> load_held_out(std::string_view file);

}  // namespace sextant
