// Bars beside each other, one for each row of a table, with a line across the end of each where its value is not known
// exactly. In: finite values from 0 on. Out: one SVG text.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sextant {

struct Bar {
  std::string name;
  std::optional<double> value;  // none: there is no bar, and `text` says why
  double low = 0, high = 0;     // of the line; both 0: none
  std::string text;             // behind the bar
};

std::string bars_svg(const std::vector<Bar>& bars, const std::string& title);

}  // namespace sextant
