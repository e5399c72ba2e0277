// A picture of curves: points joined line by line, either axis linear or logarithmic, a legend, a tooltip for each
// point. In: series of finite positive numbers. Out: one SVG text.
#pragma once

#include <string>
#include <vector>

namespace sextant {

struct ChartPoint {
  double x = 0, y = 0;
  std::string tooltip;
};
struct ChartSeries {
  std::string name;
  std::vector<ChartPoint> points;
  bool joined = true;
};
struct ChartText {
  std::string title, x, y;
};

// Both axes logarithmic.
std::string chart_svg(const std::vector<ChartSeries>& series, const ChartText& text);

}  // namespace sextant
