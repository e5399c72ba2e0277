// Figures of a Validation: errors over the judged rows, by source, device and size; layouts ordered right; memory.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "validate/validate.h"

namespace sextant {

struct ErrorSummary {
  size_t rows = 0;
  double median = 0;  // of the absolute error of step time, as a fraction
  double p90 = 0;
  double bias = 0;  // the median of the signed error
};

// The value below which a share of them lies, linearly between neighbours; 0 for none.
double quantile(std::vector<double> values, double share);

struct PairsOrdered {
  size_t pairs = 0;  // of layouts of one model on one machine whose measured times differ by more than a tenth
  size_t right = 0;
};

struct MemoryFigures {
  size_t rows = 0;
  double median = 0;
  size_t out_of_memory = 0;         // rows that did not fit
  size_t predicted_not_to_fit = 0;  // and were predicted not to
};

// Of models with experts: judged apart from dense ones, in all precisions that are priced.
struct ExpertFigures {
  size_t rows = 0, judged = 0, converted = 0, judged_converted = 0;
  ErrorSummary judged_errors;
  std::map<std::string, ErrorSummary> by_source, by_device, by_model, by_precision, by_profile;  // judged rows
  PairsOrdered pairs;
};

// Dense rows, but for `rows`, `converted` and `experts`.
struct ValidationFigures {
  size_t rows = 0, judged = 0, converted = 0, judged_converted = 0;
  ErrorSummary judged_errors, all_errors;
  double median_of_source_medians = 0;
  std::map<std::string, ErrorSummary> by_source, by_device, by_size;  // judged rows
  PairsOrdered pairs;
  MemoryFigures memory;
  ExpertFigures experts;
};

// Of the estimated memory of dense rows that say what they took; `machine`: only of rows on it, unless empty.
std::vector<HeldOutError> memory_errors(const Validation& validation, std::string_view machine = {});
// By software and device, as lines.
std::string memory_errors_text(const std::vector<HeldOutError>& errors);

ValidationFigures figures_of(const Validation& validation);

std::string validation_text(const Validation& validation, const ValidationFigures& tables,
                            const ValidationFigures& fitted);
std::string validation_json(const Validation& validation, const ValidationFigures& tables,
                            const ValidationFigures& fitted);

}  // namespace sextant
