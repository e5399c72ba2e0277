// A column as points to draw: of each of so many equal parts of the range, the least and the greatest value, so that
// no spike is lost; and the last one. Smoothing is done on all values, before.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "watch/run_columns.h"

namespace sextant {

struct SeriesPoints {
  std::vector<double> x;
  std::vector<float> y;
  void add(double at, float value) { x.push_back(at), y.push_back(value); }
};

struct SeriesRange {
  XAxis axis = XAxis::step;
  double from = -std::numeric_limits<double>::infinity(), to = std::numeric_limits<double>::infinity();
  size_t parts = 400;  // at most 2 * parts + 1 points within the range, and one beyond each end of it
};

SeriesPoints decimated(const RunColumns& run, const MetricColumn& column, const SeriesRange& range);

// The same of the exponential moving average with this weight of what came before (0 to below 1), corrected for its
// start: TensorBoard's smoothing.
SeriesPoints decimated_smooth(const RunColumns& run, const MetricColumn& column, const SeriesRange& range,
                              double weight);

}  // namespace sextant
