// The row of a field in docs/metrics.md.
#pragma once

#include <fmt/format.h>

#include <string>

#include "train/metrics.h"

namespace sextant {

inline std::string row_of(const MetricField& field) {
  return fmt::format("| `{}` | {} | {} | {} |\n", field.name, field.unit.empty() ? "–" : field.unit, field.when,
                     field.about);
}

}  // namespace sextant
