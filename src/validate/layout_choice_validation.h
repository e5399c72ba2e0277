// layout_choice_validation: how well the search chooses, held to what others measured. Where a source measured several
// layouts of one model on one machine, our first choice among them against its best. Where a source searched and
// published the layout it found best, that layout's predicted time against our best prediction in the space it searched
// (software.toml: `searched`).
#pragma once

#include <string>
#include <vector>

#include "search/search_space.h"
#include "validate/validate.h"

namespace sextant {

struct MeasuredGroup {
  std::string source, model;
  size_t layouts = 0;
  const ValidationRow* chosen = nullptr;  // predicted fastest
  const ValidationRow* best = nullptr;    // measured fastest

  double ratio() const;  // measured time of the chosen one over the least
};
// Of rows that fit and were timed, three layouts or more each.
std::vector<MeasuredGroup> measured_groups(const Validation& validation);

struct LayoutChoiceResult {
  const ValidationRow* row = nullptr;
  size_t layouts = 0;  // looked at
  LayoutChoice best;   // of those that fit, predicted fastest
  double best_s = 0;

  double ratio() const { return row->predicted_s / best_s; }
};
// Asks for Validation::predict before.
std::vector<LayoutChoiceResult> layout_choice_results(const Validation& validation);

std::string layout_choice_text(const std::vector<MeasuredGroup>& groups,
                               const std::vector<LayoutChoiceResult>& results);
std::string layout_choice_json(const std::vector<MeasuredGroup>& groups,
                               const std::vector<LayoutChoiceResult>& results);

}  // namespace sextant
