// Medians, and how far normal values lie from theirs.
#pragma once

#include <algorithm>
#include <vector>

namespace sextant {

// A standard deviation of normal values in terms of their median absolute deviation.
constexpr double kDeviationsPerMad = 1.4826;

// Of at least one.
inline double median_of(std::vector<double> values) {
  auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

}  // namespace sextant
