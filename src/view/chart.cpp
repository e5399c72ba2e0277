#include "view/chart.h"

#include <algorithm>
#include <cmath>

#include "view/svg.h"

namespace sextant {

namespace {

constexpr double kWidth = 760, kHeight = 420, kLeft = 80, kRight = 20, kTop = 60, kBottom = 50;
constexpr const char* kColours[] = {"#2a6fbb", "#c8553d", "#3d8b5f", "#8a5fb0",
                                    "#b08a2e", "#4aa3a2", "#7a7a7a", "#d070a0"};

struct Range {
  ChartScale scale = ChartScale::logarithmic;
  double low = 1e300, high = 0;
  void take(double v) { low = std::min(low, v), high = std::max(high, v); }
  double share(double v) const {
    if (scale == ChartScale::linear) return (v - low) / (high - low);
    return (std::log(v) - std::log(low)) / (std::log(high) - std::log(low));
  }
  // Whole powers of ten around what was taken, or whole steps between ticks; these.
  std::vector<double> round() {
    std::vector<double> ticks;
    if (scale == ChartScale::linear) {
      const double step = tick_step(std::max(high - low, 1e-3 * high), 6);
      const auto first = std::llround(std::floor(low / step)), last = std::llround(std::ceil(high / step + 1e-3));
      low = static_cast<double>(first) * step, high = static_cast<double>(last) * step;
      for (auto i = first; i <= last; ++i) ticks.push_back(static_cast<double>(i) * step);
      return ticks;
    }
    // A little beyond one is not worth another.
    low = std::pow(10, std::floor(std::log10(low) + 1e-6));
    high = std::max(10 * low, std::pow(10, std::ceil(std::log10(high) - 1e-6)));
    for (double v = low; v <= high * 1.01; v *= 10) ticks.push_back(v);
    return ticks;
  }
};

bool drawable(const ChartPoint& p) {
  return std::isfinite(p.x) && std::isfinite(p.y) && p.x > 0 && p.y > 0;
}

}  // namespace

std::string chart_svg(const std::vector<ChartSeries>& series, const ChartText& text) {
  Range x, y{.scale = text.y_scale};
  for (const ChartSeries& s : series)
    for (const ChartPoint& p : s.points)
      if (drawable(p)) x.take(p.x), y.take(p.y);
  Svg svg({kWidth, kHeight}, text.title);
  svg.put("<text x=\"{}\" y=\"22\" font-size=\"15\" fill=\"currentColor\">{}</text>\n", kLeft, escaped(text.title));
  if (y.high == 0) return std::move(svg).finish();
  const std::vector<double> x_ticks = x.round(), y_ticks = y.round();
  auto px = [&](double v) { return kLeft + x.share(v) * (kWidth - kLeft - kRight); };
  auto py = [&](double v) { return kHeight - kBottom - y.share(v) * (kHeight - kTop - kBottom); };
  for (double v : x_ticks) {
    svg.put(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"currentColor\" stroke-opacity=\"0.15\"/>\n",
        px(v), kTop, kHeight - kBottom);
    svg.put("<text x=\"{:.1f}\" y=\"{}\" font-size=\"11\" text-anchor=\"middle\" fill=\"currentColor\">{}</text>\n",
            px(v), kHeight - kBottom + 16, short_number(v));
  }
  for (double v : y_ticks) {
    svg.put(
        "<line x1=\"{1}\" x2=\"{2}\" y1=\"{0:.1f}\" y2=\"{0:.1f}\" stroke=\"currentColor\" stroke-opacity=\"0.15\"/>\n",
        py(v), kLeft, kWidth - kRight);
    svg.put("<text x=\"{}\" y=\"{:.1f}\" font-size=\"11\" text-anchor=\"end\" fill=\"currentColor\">{}</text>\n",
            kLeft - 6, py(v) + 4, short_number(v));
  }
  svg.put("<text x=\"{}\" y=\"{}\" font-size=\"12\" text-anchor=\"middle\" fill=\"currentColor\">{}</text>\n",
          (kLeft + kWidth) / 2, kHeight - 12, escaped(text.x));
  svg.put(
      "<text x=\"16\" y=\"{0}\" font-size=\"12\" text-anchor=\"middle\" fill=\"currentColor\" transform=\"rotate(-90 "
      "16 {0})\">{1}</text>\n",
      kHeight / 2, escaped(text.y));
  double legend = kLeft;
  for (size_t i = 0; i < series.size(); ++i) {
    const char* colour = kColours[i % std::size(kColours)];
    std::string line;
    for (const ChartPoint& p : series[i].points)
      if (drawable(p)) line += fmt::format("{:.1f},{:.1f} ", px(p.x), py(p.y));
    if (series[i].joined)
      svg.put("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>\n", line, colour);
    for (const ChartPoint& p : series[i].points)
      if (drawable(p) && !p.tooltip.empty())
        svg.put("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"><title>{}</title></circle>\n", px(p.x),
                py(p.y), colour, escaped(p.tooltip));
    svg.put(
        "<rect x=\"{:.0f}\" y=\"34\" width=\"10\" height=\"10\" fill=\"{}\"/><text x=\"{:.0f}\" y=\"43\" "
        "font-size=\"11\" fill=\"currentColor\">{}</text>\n",
        legend, colour, legend + 14, escaped(series[i].name));
    legend += 30 + 6.5 * static_cast<double>(series[i].name.size());
  }
  return std::move(svg).finish();
}

}  // namespace sextant
