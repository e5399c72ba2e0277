// Predicted against measured as a picture: one mark per run on logarithmic axes, the diagonal and bands about it,
// colour and shape by source, a tooltip with the run. In: points with positive values (others are left out and
// counted). Out: one SVG text; of more points than can be told apart, some.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sextant {

struct ScatterPoint {
  double measured = 0, predicted = 0;
  std::string series;   // its source
  std::string tooltip;  // what it is
};

enum class ScatterOf : uint8_t {
  values,  // predicted over measured, both logarithmic
  errors,  // predicted / measured − 1 over measured; without the legend, which the other has
};

struct ScatterText {
  std::string title = "predicted against measured";
  std::string quantity = "step time";
  std::string unit = "s";
  ScatterOf of = ScatterOf::values;
};

std::string scatter_svg(const std::vector<ScatterPoint>& points, const ScatterText& text = {});

}  // namespace sextant
