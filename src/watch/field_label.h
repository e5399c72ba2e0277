// Readable name of a field of metrics.jsonl, for the page and the log.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "train/step_number.h"

namespace sextant {

inline std::string field_label(std::string_view field) {
  const StepNumber* known = find_step_number(field);
  std::string label(known && !known->label.empty() ? known->label : field);
  std::ranges::replace(label, '_', ' ');
  return label;
}

}  // namespace sextant
