#include "view/bars_svg.h"

#include <algorithm>

#include "view/svg.h"

namespace sextant {

namespace {

constexpr double kBarsWidth = 520, kBarNameWidth = 150, kBarTextWidth = 90, kBarHeight = 18, kBarPitch = 28,
                 kBarsTop = 44;
constexpr size_t kLongestBarName = 22, kLongestBarText = 40;

}  // namespace

std::string bars_svg(const std::vector<Bar>& bars, const std::string& title) {
  double most = 0;
  for (const Bar& bar : bars) most = std::max({most, bar.value.value_or(0), bar.high});
  Svg svg({kBarsWidth, kBarsTop + kBarPitch * static_cast<double>(bars.size()) + 8}, title);
  svg.put("<text x=\"0\" y=\"20\" font-size=\"15\" fill=\"currentColor\">{}</text>\n", escaped(title));
  auto across = [&](double value) {
    return kBarNameWidth + (most > 0 ? value / most : 0) * (kBarsWidth - kBarNameWidth - kBarTextWidth);
  };
  double y = kBarsTop;
  for (const Bar& bar : bars) {
    double middle = y + kBarHeight / 2;
    svg.put(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"12\" text-anchor=\"end\" fill=\"currentColor\">{}<title>{}</title>"
        "</text>\n",
        kBarNameWidth - 8, middle + 4, escaped(shortened(bar.name, kLongestBarName)), escaped(bar.name));
    double end = kBarNameWidth;
    if (bar.value) {
      end = across(*bar.value);
      svg.put("<rect x=\"{}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" fill=\"#2a6fbb\"/>\n", kBarNameWidth, y,
              end - kBarNameWidth, kBarHeight);
    }
    if (bar.high > 0) {
      svg.put(
          "<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"currentColor\" "
          "stroke-width=\"1.5\"/>\n",
          across(bar.low), across(bar.high), middle, middle);
      end = std::max(end, across(bar.high));
    }
    svg.put("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"12\" fill=\"currentColor\">{}<title>{}</title></text>\n",
            end + 8, middle + 4, escaped(shortened(bar.text, kLongestBarText)), escaped(bar.text));
    y += kBarPitch;
  }
  return std::move(svg).finish();
}

}  // namespace sextant
