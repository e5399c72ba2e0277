// Curves in a terminal, of braille dots (two by four a character) or of stars where the terminal has no UTF-8.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/text_style.h"
#include "watch/decimate.h"
#include "watch/run_set.h"

namespace sextant {

struct TextCurve {
  SeriesPoints points;
  std::string name;
  size_t colour = 0;  // of the run's place among all, also where some have no such curve
};

struct TextPlot {
  std::string title, x_name;
  std::function<std::string(double)> x_text = {};  // the ends of x; else short numbers
  size_t width = 80, height = 12;                  // characters, with labels; lines of the curves
  bool braille = true;
  Colours colours = Colours::off;  // one for each curve; off: all look alike
};

// Title, lines of the picture with values at the left, the ends of x below. Ends with a line end.
std::string text_plot(const std::vector<TextCurve>& curves, const TextPlot& plot);

}  // namespace sextant
