#include "watch/decimate.h"

#include <algorithm>
#include <cmath>

namespace sextant {

namespace {

// Takes points in the order of x; `value(i)` is what to draw at index i of the column.
template <typename Value>
SeriesPoints decimate_by(const RunColumns& run, const MetricColumn& column, const SeriesRange& range, Value value) {
  SeriesPoints points;
  if (run.rows() == 0 || column.size() == 0) return points;
  auto x_of = [&](size_t i) { return run.x(range.axis, column.row(i)); };
  size_t begin = column.first_at_or_after(run.first_row_at_or_after(range.axis, range.from));
  double from = std::max(range.from, x_of(0)), to = std::min(range.to, x_of(column.size() - 1));
  size_t end = begin;
  {
    size_t row = std::isinf(range.to) ? run.rows() : run.first_row_at_or_after(range.axis, range.to);
    while (row < run.rows() && run.x(range.axis, row) <= range.to) ++row;
    end = column.first_at_or_after(row);
  }
  if (begin > 0) points.add(x_of(begin - 1), value(begin - 1));
  if (end - begin <= 2 * range.parts || !(to > from)) {
    for (size_t i = begin; i < end && i - begin < 2 * range.parts; ++i) points.add(x_of(i), value(i));
  } else {
    double part_width = (to - from) / static_cast<double>(range.parts);
    for (size_t part = 0, i = begin; part < range.parts && i < end; ++part) {
      // The last part takes what rounding leaves over.
      double part_end = from + static_cast<double>(part + 1) * part_width;
      size_t stop = part + 1 == range.parts
                        ? end
                        : std::min(end, column.first_at_or_after(run.first_row_at_or_after(range.axis, part_end)));
      size_t least = end, most = end;
      float least_value = std::numeric_limits<float>::infinity(), most_value = -least_value;
      for (; i < stop; ++i) {
        float v = value(i);  // comparisons with NaN are false
        if (v < least_value) least = i, least_value = v;
        if (v > most_value) most = i, most_value = v;
      }
      if (least == end) continue;
      points.add(x_of(std::min(least, most)), least <= most ? least_value : most_value);
      if (least != most) points.add(x_of(std::max(least, most)), least < most ? most_value : least_value);
    }
  }
  // Where the curve stands now.
  if (end == column.size() && end > begin && points.x.back() < x_of(end - 1)) points.add(x_of(end - 1), value(end - 1));
  if (end < column.size()) points.add(x_of(end), value(end));
  // Values that are not there were taken along where all rows fit.
  size_t kept = 0;
  for (size_t i = 0; i < points.y.size(); ++i)
    if (!std::isnan(points.y[i])) points.x[kept] = points.x[i], points.y[kept++] = points.y[i];
  points.x.resize(kept);
  points.y.resize(kept);
  return points;
}

}  // namespace

SeriesPoints decimated(const RunColumns& run, const MetricColumn& column, const SeriesRange& range) {
  return decimate_by(run, column, range, [&](size_t i) { return column.value(i); });
}

SeriesPoints decimated_smooth(const RunColumns& run, const MetricColumn& column, const SeriesRange& range,
                              double weight) {
  std::vector<float> smooth(column.size());
  double average = 0, share = 0;
  for (size_t i = 0; i < smooth.size(); ++i) {
    float value = column.value(i);
    if (std::isnan(value)) {
      smooth[i] = value;
      continue;
    }
    average = weight * average + (1 - weight) * value;
    share = weight * share + (1 - weight);
    smooth[i] = static_cast<float>(average / share);
  }
  return decimate_by(run, column, range, [&](size_t i) { return smooth[i]; });
}

}  // namespace sextant
