// A picture of curves: points joined line by line, x logarithmic, y that or linear, a legend, a tooltip for each
// point. In: series of finite positive numbers. Out: one SVG text.
#pragma once

#include <cstdint>
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
enum class ChartScale : uint8_t { logarithmic, linear };
struct ChartText {
  std::string title, x, y;
  ChartScale y_scale = ChartScale::logarithmic;
};

std::string chart_svg(const std::vector<ChartSeries>& series, const ChartText& text);

}  // namespace sextant
