#include "watch/curve_svg.h"

#include <algorithm>
#include <cmath>

#include "view/svg.h"
#include "watch/decimate.h"
#include "watch/field_label.h"

namespace sextant {

namespace {

constexpr double kCurveWidth = 560, kCurveHeight = 240, kCurveLeft = 64, kCurveRight = 12, kCurveTop = 34,
                 kCurveBottom = 30;
constexpr size_t kCurveParts = 250;

}  // namespace

std::string curve_svg(const WatchedRun& run, const MetricColumn& column) {
  SeriesPoints points = decimated(run.columns(), column, {.axis = XAxis::step, .parts = kCurveParts});
  const std::string label = field_label(column.name());
  Svg svg({kCurveWidth, kCurveHeight}, label);
  svg.put("<text class=\"title\" x=\"{}\" y=\"20\">{}</text>\n", kCurveLeft, escaped(label));
  if (points.x.empty()) return std::move(svg).finish();
  double x_low = points.x.front(), x_high = std::max(points.x.back(), x_low + 1);
  auto [least, most] = std::ranges::minmax(points.y);
  double y_low = least, y_high = most,
         pad = y_high > y_low ? (y_high - y_low) * 0.05 : std::max(std::fabs(y_low), 1e-9) * 0.05;
  y_low -= pad, y_high += pad;
  auto px = [&](double x) {
    return kCurveLeft + (x - x_low) / (x_high - x_low) * (kCurveWidth - kCurveLeft - kCurveRight);
  };
  auto py = [&](double y) {
    return kCurveHeight - kCurveBottom - (y - y_low) / (y_high - y_low) * (kCurveHeight - kCurveTop - kCurveBottom);
  };
  double step = tick_step(y_high - y_low, 5);
  for (double tick = std::ceil(y_low / step) * step; tick <= y_high; tick += step) {
    svg.put("<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n", kCurveLeft,
            kCurveWidth - kCurveRight, py(tick), py(tick));
    svg.put("<text class=\"quiet\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", kCurveLeft - 6, py(tick) + 4,
            short_number(std::fabs(tick) < step / 2 ? 0 : tick));
  }
  double x_step = tick_step(x_high - x_low, 6);
  for (double tick = std::ceil(x_low / x_step) * x_step; tick <= x_high; tick += x_step)
    svg.put("<text class=\"quiet\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", px(tick),
            kCurveHeight - kCurveBottom + 18, short_number(tick));
  for (const RunEvent& event : run.events()) {
    if (!event.step || static_cast<double>(*event.step) < x_low || static_cast<double>(*event.step) > x_high) continue;
    svg.put(
        "<line class=\"{0}\" x1=\"{1:.1f}\" x2=\"{1:.1f}\" y1=\"{2}\" y2=\"{3}\" stroke-opacity=\"0.5\" "
        "stroke-dasharray=\"2 3\"><title>{4}</title></line>\n",
        event.kind == EventKind::failure || event.kind == EventKind::spike ? "limit" : "mark",
        px(static_cast<double>(*event.step)), kCurveTop, kCurveHeight - kCurveBottom,
        escaped(fmt::format("{}: {}", name_of(event.kind), event.text)));
  }
  std::string line;
  for (size_t i = 0; i < points.x.size(); ++i) line += fmt::format("{:.1f},{:.1f} ", px(points.x[i]), py(points.y[i]));
  svg.put("<polyline points=\"{}\" fill=\"none\" stroke=\"#3d84c6\" stroke-width=\"1.5\"/>\n", line);
  return std::move(svg).finish();
}

}  // namespace sextant
