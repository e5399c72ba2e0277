#include "watch/text_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sextant {

namespace {

constexpr size_t kLabelWidth = 10;

// Dots of one braille character, by column and row, as bits of U+2800.
constexpr unsigned kBrailleDots[2][4] = {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}};
constexpr const char* kCurveColours[] = {"\033[34m", "\033[31m", "\033[32m", "\033[35m", "\033[33m", "\033[36m"};

std::string utf8_of_braille(unsigned dots) {
  unsigned code = 0x2800 + dots;
  return {static_cast<char>(0xe0 | (code >> 12)), static_cast<char>(0x80 | (code >> 6 & 0x3f)),
          static_cast<char>(0x80 | (code & 0x3f))};
}

std::string short_number(double v) {
  double size = std::fabs(v);
  if (size >= 1e12) return fmt::format("{:.4g}T", v / 1e12);
  if (size >= 1e9) return fmt::format("{:.4g}G", v / 1e9);
  if (size >= 1e6) return fmt::format("{:.4g}M", v / 1e6);
  return size >= 1e4 ? fmt::format("{:.4g}k", v / 1e3) : fmt::format("{:.4g}", v);
}

struct PlotBounds {
  double x_low = 1e300, x_high = -1e300, y_low = 1e300, y_high = -1e300;
  explicit PlotBounds(const std::vector<TextCurve>& curves) {
    for (const TextCurve& curve : curves)
      for (size_t i = 0; i < curve.points.x.size(); ++i) {
        x_low = std::min(x_low, curve.points.x[i]), x_high = std::max(x_high, curve.points.x[i]);
        y_low = std::min<double>(y_low, curve.points.y[i]), y_high = std::max<double>(y_high, curve.points.y[i]);
      }
    if (x_high <= x_low) x_high = x_low + 1;
    if (y_high > y_low) return;
    double pad = y_low == 0 ? 1 : std::fabs(y_low) * 0.05;
    y_low -= pad, y_high += pad;
  }
};

// A grid of dots, each with the colour of the curve that set it last.
class DotGrid {
 public:
  DotGrid(size_t columns, size_t rows, bool braille)
      : columns_(columns),
        rows_(rows),
        across_(braille ? 2 : 1),
        down_(braille ? 4 : 1),
        dots_(columns * rows, 0),
        curve_of_(columns * rows, -1) {}

  double width() const { return static_cast<double>(columns_ * across_ - 1); }
  double height() const { return static_cast<double>(rows_ * down_ - 1); }

  void line(double x0, double y0, double x1, double y1, int curve) {
    auto steps = static_cast<int>(std::ceil(std::max({std::fabs(x1 - x0), std::fabs(y1 - y0), 1.0})));
    for (int i = 0; i <= steps; ++i) {
      double share = static_cast<double>(i) / steps;
      set(x0 + (x1 - x0) * share, y0 + (y1 - y0) * share, curve);
    }
  }

  std::string row_text(size_t row, Colours colours) const {
    std::string out;
    for (size_t column = 0; column < columns_; ++column) {
      unsigned dots = dots_[row * columns_ + column];
      std::string glyph = dots == 0 ? " " : down_ == 4 ? utf8_of_braille(dots) : "*";
      int curve = curve_of_[row * columns_ + column];
      bool coloured = colours == Colours::on && curve >= 0;
      out +=
          coloured ? kCurveColours[static_cast<size_t>(curve) % std::size(kCurveColours)] + glyph + "\033[0m" : glyph;
    }
    while (out.ends_with(' ')) out.pop_back();
    return out;
  }

 private:
  void set(double x, double y, int curve) {
    auto px = static_cast<size_t>(std::lround(std::clamp(x, 0.0, width())));
    auto py = static_cast<size_t>(std::lround(std::clamp(y, 0.0, height())));
    size_t cell = py / down_ * columns_ + px / across_;
    dots_[cell] |= down_ == 4 ? kBrailleDots[px % 2][py % 4] : 1;
    curve_of_[cell] = curve;
  }

  size_t columns_, rows_, across_, down_;
  std::vector<unsigned> dots_;
  std::vector<int> curve_of_;
};

}  // namespace

std::string text_plot(const std::vector<TextCurve>& curves, const TextPlot& plot) {
  std::string out = plot.title + "\n";
  bool any = std::ranges::any_of(curves, [](const TextCurve& curve) { return !curve.points.x.empty(); });
  if (!any) return out + "  no values\n";
  PlotBounds bounds(curves);
  size_t columns = std::max<size_t>(plot.width, kLabelWidth + 12) - kLabelWidth - 2;
  DotGrid grid(columns, plot.height, plot.braille);
  auto px = [&](double x) { return (x - bounds.x_low) / (bounds.x_high - bounds.x_low) * grid.width(); };
  auto py = [&](double y) { return (bounds.y_high - y) / (bounds.y_high - bounds.y_low) * grid.height(); };
  for (size_t c = 0; c < curves.size(); ++c) {
    const SeriesPoints& points = curves[c].points;
    for (size_t i = 0; i < points.x.size(); ++i) {
      size_t before = i > 0 ? i - 1 : 0;
      grid.line(px(points.x[before]), py(points.y[before]), px(points.x[i]), py(points.y[i]),
                static_cast<int>(curves[c].colour));
    }
  }
  for (size_t row = 0; row < plot.height; ++row) {
    bool labelled = row == 0 || row + 1 == plot.height || row == plot.height / 2;
    double share = plot.height > 1 ? static_cast<double>(row) / static_cast<double>(plot.height - 1) : 0;
    std::string label = labelled ? short_number(bounds.y_high - share * (bounds.y_high - bounds.y_low)) : "";
    out += fmt::format("{:>{}} {}{}\n", label, kLabelWidth - 1, plot.braille ? "│" : "|",
                       grid.row_text(row, plot.colours));
  }
  auto x_text = [&](double x) { return plot.x_text ? plot.x_text(x) : short_number(x); };
  std::string left = fmt::format("{} {}", plot.x_name, x_text(bounds.x_low)), right = x_text(bounds.x_high);
  size_t gap = columns > left.size() + right.size() ? columns - left.size() - right.size() : 1;
  return out + fmt::format("{:>{}}{}{}{}\n", "", kLabelWidth + 1, left, std::string(gap, ' '), right);
}

}  // namespace sextant
