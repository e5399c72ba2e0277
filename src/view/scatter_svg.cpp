#include "view/scatter_svg.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "view/svg.h"

namespace sextant {

namespace {

// px
constexpr double kWidth = 560, kLeft = 62, kTop = 48, kPlot = 484, kBelow = 48, kLine = 17;
constexpr size_t kColours = 8, kShapes = 3, kNamedSeries = kColours * kShapes;
constexpr size_t kOthers = kNamedSeries;  // all series beyond those
constexpr size_t kMostMarks = 3000;
constexpr double kMark = 4;
constexpr double kMostError = 0.6;  // larger ones lie on the edge

std::string mark(size_t series, double x, double y) {
  size_t colour = series == kOthers ? 8 : series % kColours;
  if (series == kOthers || series / kColours == 0)
    return fmt::format("<circle class=\"c{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"", colour, x, y, kMark);
  if (series / kColours == 1)
    return fmt::format("<rect class=\"c{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\"", colour, x - kMark,
                       y - kMark, 2 * kMark, 2 * kMark);
  return fmt::format("<path class=\"c{}\" d=\"M{:.1f} {:.1f}l{} {}h{}z\"", colour, x, y - 1.3 * kMark, 1.2 * kMark,
                     2.2 * kMark, -2.4 * kMark);
}

struct Series {
  std::string name;
  size_t points = 0;
};

class Picture {
 public:
  Picture(const std::vector<ScatterPoint>& points, const ScatterText& text) : text_(text) {
    for (const ScatterPoint& point : points)
      if (std::isnormal(point.measured) && std::isnormal(point.predicted) && point.measured > 0 && point.predicted > 0)
        points_.push_back(&point);
    left_out_ = points.size() - points_.size();
    find_range();
    find_series();
  }

  std::string svg() {
    Svg svg({kWidth, kTop + kPlot + kBelow + kLine * static_cast<double>(legend_lines()) + 10}, text_.title);
    svg_ = &svg;
    svg.put("<text class=\"title\" x=\"{:.0f}\" y=\"20\">{}</text>\n", kLeft, escaped(text_.title));
    svg.put(
        "<defs><clipPath id=\"{}\"><rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" "
        "height=\"{:.0f}\"/></clipPath></defs>\n",
        clip_id(), kLeft, kTop, kPlot, kPlot);
    axes();
    bands();
    size_t drawn = marks();
    std::string note = fmt::format("{} runs; the bands are 10 and 20 % about equality", drawn);
    if (drawn < points_.size()) note += fmt::format("; {} more lie on or beside these", points_.size() - drawn);
    if (left_out_ > 0) note += fmt::format("; {} without both values", left_out_);
    svg.put("<text class=\"quiet\" x=\"{:.0f}\" y=\"38\">{}</text>\n", kLeft, note);
    if (!of_errors()) legend();
    return std::move(svg).finish();
  }

 private:
  // To a tenth of a decade around all values, and a little more.
  void find_range() {
    double least = 1e300, most = 0;
    for (const ScatterPoint* p : points_) {
      least = std::min({least, p->measured, p->predicted});
      most = std::max({most, p->measured, p->predicted});
    }
    if (points_.empty()) least = 0.1, most = 10;
    from_ = std::floor(std::log10(least / 1.15) * 10) / 10;
    to_ = std::max(std::ceil(std::log10(most * 1.15) * 10) / 10, from_ + 0.5);
  }

  void find_series() {
    std::map<std::string, size_t> counts;
    for (const ScatterPoint* p : points_) ++counts[p->series];
    for (const auto& [name, count] : counts) series_.push_back({name, count});
    std::stable_sort(series_.begin(), series_.end(),
                     [](const Series& a, const Series& b) { return a.points > b.points; });
    for (size_t i = 0; i < series_.size(); ++i) number_[series_[i].name] = std::min(i, kOthers);
  }

  size_t legend_lines() const { return of_errors() ? 0 : std::min(series_.size(), kNamedSeries + 1); }
  double along(double value) const { return kPlot * (std::log10(value) - from_) / (to_ - from_); }
  double x(double value) const { return kLeft + along(value); }
  double y(double value) const { return kTop + kPlot - along(value); }

  double error_y(double error) const {
    return kTop + kPlot / 2 * (1 - std::clamp(error, -kMostError, kMostError) / kMostError);
  }
  bool of_errors() const { return text_.of == ScatterOf::errors; }

  void axes() {
    for (auto decade = static_cast<int>(std::floor(from_)); decade <= static_cast<int>(std::ceil(to_)); ++decade)
      for (int factor : {1, 2, 5}) {
        double value = factor * std::pow(10, decade);
        if (along(value) < -0.5 || along(value) > kPlot + 0.5) continue;
        std::string word = factor == 1 || to_ - from_ < 3.5 ? fmt::format("{:g}", value) : "";
        line_across(x(value), word);
        if (!of_errors()) line_along(y(value), word);
      }
    for (int percent = -60; of_errors() && percent <= 60; percent += 20)
      line_along(error_y(percent / 100.0), percent == 0 ? "0 %" : fmt::format("{:+d} %", percent));
    svg_->put("<rect class=\"box\" x=\"{0:.0f}\" y=\"{1:.0f}\" width=\"{2:.0f}\" height=\"{2:.0f}\"/>\n", kLeft, kTop,
              kPlot);
    svg_->put("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">measured {} ({})</text>\n", kLeft + kPlot / 2,
              kTop + kPlot + 36, escaped(text_.quantity), escaped(text_.unit));
    std::string upward =
        of_errors() ? "predicted / measured − 1" : fmt::format("predicted {} ({})", text_.quantity, text_.unit);
    svg_->put("<text transform=\"translate(14 {:.0f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
              kTop + kPlot / 2, escaped(upward));
  }

  void line_across(double px, std::string_view word) {
    svg_->put(
        "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.0f}\" y2=\"{2:.0f}\"/><text class=\"quiet\" "
        "x=\"{0:.1f}\" y=\"{3:.0f}\" "
        "text-anchor=\"middle\">{4}</text>\n",
        px, kTop, kTop + kPlot, kTop + kPlot + 16, word);
  }

  void line_along(double py, std::string_view word) {
    svg_->put(
        "<line class=\"grid\" x1=\"{0:.0f}\" x2=\"{1:.0f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text class=\"quiet\" "
        "x=\"{3:.0f}\" y=\"{4:.1f}\" "
        "text-anchor=\"end\">{5}</text>\n",
        kLeft, kLeft + kPlot, py, kLeft - 6, py + 4, word);
  }

  // Where a mark of this measured value and this relative error lies.
  double height_of(double measured, double error) const {
    return of_errors() ? error_y(error) : y(measured * (1 + error));
  }

  void bands() {
    double low = std::pow(10, from_), high = std::pow(10, to_);
    svg_->put("<g clip-path=\"url(#{})\">", clip_id());
    for (double share : {0.2, 0.1})
      svg_->put("<path class=\"band\" d=\"M{0:.1f} {2:.1f}L{1:.1f} {3:.1f}L{1:.1f} {4:.1f}L{0:.1f} {5:.1f}Z\"/>",
                x(low), x(high), height_of(low, share), height_of(high, share), height_of(high, -share),
                height_of(low, -share));
    svg_->put("<line class=\"axis\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/></g>\n", x(low),
              height_of(low, 0), x(high), height_of(high, 0));
  }

  std::string_view clip_id() const { return of_errors() ? "error-plot" : "value-plot"; }

  // Marks at the same place are drawn once. Returns how many there are.
  size_t marks() {
    std::set<std::tuple<size_t, int, int>> taken;
    for (const ScatterPoint* p : points_) {
      size_t series = number_.at(p->series);
      double px = x(p->measured), py = height_of(p->measured, p->predicted / p->measured - 1);
      bool dense = points_.size() > kMostMarks;
      if (dense && !taken.insert({series, static_cast<int>(px / 3), static_cast<int>(py / 3)}).second) continue;
      if (!dense) taken.insert({taken.size(), 0, 0});
      if (taken.size() > kMostMarks) return kMostMarks;
      svg_->put("{} fill-opacity=\"0.8\"><title>{}\nmeasured {:.4g} {}, predicted {:.4g} {} ({:+.1f} %)</title></{}>\n",
                mark(series, px, py), escaped(shortened(p->tooltip, 160)), p->measured, escaped(text_.unit),
                p->predicted, escaped(text_.unit), 100 * (p->predicted / p->measured - 1), element_of(series));
    }
    return taken.size();
  }

  static std::string_view element_of(size_t series) {
    return series == kOthers || series / kColours == 0 ? "circle" : series / kColours == 1 ? "rect" : "path";
  }

  void legend() {
    double line = kTop + kPlot + kBelow + 12;
    size_t others = 0;
    for (size_t i = 0; i < series_.size(); ++i) {
      if (i >= kNamedSeries) {
        others += series_[i].points;
        continue;
      }
      svg_->put(
          "{}/><text x=\"{:.0f}\" y=\"{:.1f}\">{}<title>{}</title></text><text class=\"quiet\" x=\"{:.0f}\" "
          "y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
          mark(i, kLeft + 6, line - 4), kLeft + 18, line, escaped(shortened(series_[i].name, 64)),
          escaped(shortened(series_[i].name, 200)), kLeft + kPlot, line, series_[i].points);
      line += kLine;
    }
    if (others > 0)
      svg_->put(
          "{}/><text x=\"{:.0f}\" y=\"{:.1f}\">{} other sources</text><text class=\"quiet\" x=\"{:.0f}\" y=\"{:.1f}\" "
          "text-anchor=\"end\">{}</text>\n",
          mark(kOthers, kLeft + 6, line - 4), kLeft + 18, line, series_.size() - kNamedSeries, kLeft + kPlot, line,
          others);
  }

  const ScatterText& text_;
  std::vector<const ScatterPoint*> points_;
  size_t left_out_ = 0;
  double from_ = 0, to_ = 1;    // powers of ten
  std::vector<Series> series_;  // the largest first
  std::map<std::string, size_t> number_;
  Svg* svg_ = nullptr;
};

}  // namespace

std::string scatter_svg(const std::vector<ScatterPoint>& points, const ScatterText& text) {
  return Picture(points, text).svg();
}

}  // namespace sextant
