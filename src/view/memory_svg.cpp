#include "view/memory_svg.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/units.h"
#include "view/svg.h"

namespace sextant {

namespace {

// px
constexpr double kWidth = 470, kHeight = 268, kLeft = 52, kRight = 14, kTop = 46, kBottom = 64;
constexpr double kPlot = kWidth - kLeft - kRight, kTall = kHeight - kTop - kBottom;
constexpr size_t kMostPanels = 8;
constexpr size_t kColumns = 320;  // more moments than this are drawn by the fullest of each column
constexpr size_t kTooltips = 64;
constexpr size_t kMostPhases = 12;   // a step that changes between them more often does not name them
constexpr double kLimitInSight = 3;  // a limit this many times what is used would flatten everything

constexpr std::array<std::string_view, kMemoryUses> kNames = {"weights",     "gradients", "optimizer",
                                                              "activations", "messages",  "scratch"};
constexpr std::array<int, kMemoryUses> kColours = {0, 2, 3, 1, 5, 6};

int64_t fullest(const MemoryPanel& panel) {
  int64_t most = panel.allocated;
  for (const MemoryPoint& point : panel.points) most = std::max(most, point.total() + panel.outside);
  return most;
}

// The first, the last, the largest, and then from the front.
std::vector<const MemoryPanel*> chosen(const MemoryPicture& picture) {
  size_t count = picture.panels.size();
  std::set<size_t> take;
  if (count > kMostPanels) {
    auto larger = [](const MemoryPanel& a, const MemoryPanel& b) { return fullest(a) < fullest(b); };
    take.insert(static_cast<size_t>(std::max_element(picture.panels.begin(), picture.panels.end(), larger) -
                                    picture.panels.begin()));
    take.insert(count - 1);
  }
  for (size_t i = 0; i < count && take.size() < kMostPanels; ++i) take.insert(i);
  std::vector<const MemoryPanel*> panels;
  for (size_t i : take) panels.push_back(&picture.panels[i]);
  return panels;
}

// One moment per column: its fullest.
std::vector<size_t> thinned(const std::vector<MemoryPoint>& points) {
  std::vector<size_t> kept;
  size_t columns = std::min(kColumns, points.size());
  for (size_t c = 0; c < columns; ++c) {
    size_t first = c * points.size() / columns, last = (c + 1) * points.size() / columns, best = first;
    for (size_t i = first; i < last; ++i)
      if (points[i].total() > points[best].total()) best = i;
    kept.push_back(best);
  }
  return kept;
}

class Panel {
 public:
  Panel(const MemoryPanel& panel, int64_t limit, double top)
      : panel_(panel), limit_(limit), top_(top), kept_(thinned(panel.points)) {
    for (size_t i = 1; i < panel.points.size(); ++i)
      if (panel.points[i].total() > panel.points[peak_].total()) peak_ = i;
  }

  std::string svg() {
    Svg svg({kWidth, kHeight}, "memory, " + panel_.title);
    svg_ = &svg;
    heading();
    axis();
    areas();
    phases();
    lines();
    tooltips();
    legend();
    return std::move(svg).finish();
  }

 private:
  double x(size_t column) const {
    return kLeft + kPlot * static_cast<double>(column) / static_cast<double>(std::max<size_t>(1, kept_.size()));
  }
  double y(double bytes) const { return kTop + kTall * (1 - bytes / top_); }
  bool limit_in_sight() const { return limit_ > 0 && static_cast<double>(limit_) <= top_; }
  const MemoryPoint& at(size_t column) const { return panel_.points[kept_[column]]; }

  void heading() {
    svg_->put("<text class=\"title\" x=\"{:.0f}\" y=\"18\">{}</text>", kLeft, escaped(panel_.title));
    if (panel_.points.empty()) return;
    const MemoryPoint& peak = panel_.points[peak_];
    svg_->put("<text class=\"quiet\" x=\"{:.0f}\" y=\"34\">fullest at {}<title>{}</title></text>\n", kLeft,
              escaped(shortened(peak.path, 46)), escaped(peak.path));
    std::string most = human(Bytes{fullest(panel_)});
    if (limit_ > 0) most += " of " + human(Bytes{limit_});
    svg_->put("<text class=\"{}\" x=\"{:.0f}\" y=\"18\" text-anchor=\"end\">{}</text>\n",
              limit_ > 0 && fullest(panel_) > limit_ ? "alarm" : "ink", kWidth - kRight, most);
  }

  void axis() {
    constexpr double kGiB = 1 << 30, kMiB = 1 << 20, kKiB = 1 << 10;
    auto [unit, name] = top_ >= kGiB   ? std::pair(kGiB, "GiB")
                        : top_ >= kMiB ? std::pair(kMiB, "MiB")
                                       : std::pair(kKiB, "KiB");
    double step = tick_step(top_ / unit, 5);
    for (int i = 0; i * step * unit <= top_ * (1 + 1e-9); ++i)
      svg_->put(
          "<line class=\"grid\" x1=\"{:.0f}\" x2=\"{:.0f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/><text class=\"quiet\" "
          "x=\"{:.0f}\" y=\"{:.1f}\" "
          "text-anchor=\"end\">{:g}</text>\n",
          kLeft, kWidth - kRight, y(i * step * unit), y(i * step * unit), kLeft - 6, y(i * step * unit) + 4, i * step);
    svg_->put("<text class=\"quiet\" x=\"{:.0f}\" y=\"34\" text-anchor=\"end\">{}</text>\n", kLeft - 6, name);
  }

  void areas() {
    std::vector<double> below(kept_.size(), static_cast<double>(panel_.outside));
    if (panel_.outside > 0 && !kept_.empty())
      svg_->put("<rect class=\"c{}\" x=\"{:.1f}\" y=\"{:.2f}\" width=\"{:.1f}\" height=\"{:.2f}\"/>\n", kOutsideColour,
                kLeft, y(below[0]), kPlot, y(0) - y(below[0]));
    for (size_t use = 0; use < kMemoryUses; ++use) {
      std::vector<double> above = below;
      bool any = false;
      for (size_t c = 0; c < kept_.size(); ++c)
        above[c] += static_cast<double>(at(c).bytes[use]), any = any || at(c).bytes[use] > 0;
      if (any) area(below, above, kColours[use]);
      below = std::move(above);
    }
  }

  // Steps, not slopes: memory changes between ops.
  void area(const std::vector<double>& below, const std::vector<double>& above, int colour) {
    svg_->put("<path class=\"c{}\" d=\"M{:.1f} {:.1f}", colour, x(0), y(above[0]));
    for (size_t c = 0; c < above.size(); ++c) {
      if (c > 0 && above[c] != above[c - 1]) svg_->put("V{:.1f}", y(above[c]));
      svg_->put("H{:.1f}", x(c + 1));
    }
    for (size_t c = below.size(); c-- > 0;) {
      if (c + 1 == below.size() || below[c] != below[c + 1]) svg_->put("V{:.1f}", y(below[c]));
      svg_->put("H{:.1f}", x(c));
    }
    svg_->put("Z\"/>\n");
  }

  size_t phase_count() const {
    size_t count = 0;
    for (size_t c = 0; c < kept_.size(); ++c) count += c == 0 || at(c).phase != at(c - 1).phase;
    return count;
  }

  void phases() {
    svg_->put("<line class=\"axis\" x1=\"{:.0f}\" x2=\"{:.0f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n", kLeft,
              kWidth - kRight, y(0), y(0));
    if (phase_count() > kMostPhases) {
      svg_->put("<text class=\"quiet\" x=\"{:.0f}\" y=\"{:.1f}\">ops of the step, in order</text>\n", kLeft, y(0) + 15);
      return;
    }
    for (size_t c = 0, start = 0; c < kept_.size(); ++c) {
      if (c + 1 < kept_.size() && at(c + 1).phase == at(c).phase) continue;
      if (start > 0)
        svg_->put(
            "<line class=\"axis\" stroke-dasharray=\"2 3\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.0f}\" "
            "y2=\"{2:.1f}\"/>",
            x(start), kTop, y(0));
      const std::string& name = at(c).phase;
      if (x(c + 1) - x(start) > 6.5 * static_cast<double>(name.size()))
        svg_->put("<text class=\"quiet\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                  (x(start) + x(c + 1)) / 2, y(0) + 15, escaped(name));
      start = c + 1;
    }
  }

  void lines() {
    auto line = [&](std::string_view look, double bytes, std::string_view what) {
      svg_->put(
          "<line {} x1=\"{:.0f}\" x2=\"{:.0f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/><text class=\"quiet\" x=\"{:.0f}\" "
          "y=\"{:.1f}\" "
          "text-anchor=\"end\">{}</text>\n",
          look, kLeft, kWidth - kRight, y(bytes), y(bytes), kWidth - kRight - 2, y(bytes) - 4, what);
    };
    if (limit_in_sight()) line("class=\"limit\" stroke-width=\"2\"", static_cast<double>(limit_), "the device has");
    if (panel_.allocated > 0)
      line("class=\"mark\" stroke-dasharray=\"5 4\"", static_cast<double>(panel_.allocated), "allocated");
    if (panel_.points.empty()) return;
    size_t column = 0;
    while (column + 1 < kept_.size() && kept_[column] != peak_) ++column;
    double px = (x(column) + x(column + 1)) / 2,
           py = y(static_cast<double>(panel_.points[peak_].total() + panel_.outside));
    svg_->put("<circle class=\"mark\" stroke-width=\"2\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"/>\n", px, py);
  }

  void tooltips() {
    size_t count = std::min(kTooltips, kept_.size());
    for (size_t t = 0; t < count; ++t) {
      size_t first = t * kept_.size() / count, last = (t + 1) * kept_.size() / count, best = first;
      for (size_t c = first; c < last; ++c)
        if (at(c).total() > at(best).total()) best = c;
      const MemoryPoint& point = at(best);
      std::string parts;
      for (size_t use = kMemoryUses; use-- > 0;)
        if (point.bytes[use] > 0) parts += fmt::format("\n{} {}", kNames[use], human(Bytes{point.bytes[use]}));
      svg_->put(
          "<rect class=\"hover\" x=\"{:.1f}\" y=\"{:.0f}\" width=\"{:.1f}\" height=\"{:.0f}\"><title>{}: "
          "{}{}</title></rect>\n",
          x(first), kTop, x(last) - x(first), kTall, escaped(shortened(point.path, 80)),
          human(Bytes{point.total() + panel_.outside}), parts);
    }
  }

  void legend() {
    std::array<bool, kMemoryUses> seen = {};
    for (const MemoryPoint& point : panel_.points)
      for (size_t use = 0; use < kMemoryUses; ++use) seen[use] = seen[use] || point.bytes[use] > 0;
    double at = kLeft, line = kHeight - 28;
    auto entry = [&](int colour, std::string_view name) {
      if (at + 17 + 6.3 * static_cast<double>(name.size()) > kWidth) at = kLeft, line += 18;
      at = svg_->legend_entry(at, line, fmt::format("class=\"c{}\"", colour), name);
    };
    if (panel_.outside > 0) entry(kOutsideColour, "driver, libraries");
    for (size_t use = 0; use < kMemoryUses; ++use)
      if (seen[use]) entry(kColours[use], kNames[use]);
  }

  const MemoryPanel& panel_;
  int64_t limit_;
  double top_;  // bytes at the top of the plot
  std::vector<size_t> kept_;
  size_t peak_ = 0;
  Svg* svg_ = nullptr;
};

}  // namespace

std::string_view name_of(MemoryUse use) {
  return kNames[static_cast<size_t>(use)];
}

int colour_of(MemoryUse use) {
  return kColours[static_cast<size_t>(use)];
}

int64_t MemoryPoint::total() const {
  return std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
}

std::vector<std::string> memory_panels(const MemoryPicture& picture) {
  double most = 1;
  for (const MemoryPanel& panel : picture.panels) most = std::max(most, static_cast<double>(fullest(panel)));
  auto limit = static_cast<double>(picture.limit);
  if (limit > most && limit <= kLimitInSight * most) most = limit;
  std::vector<std::string> panels;
  for (const MemoryPanel* panel : chosen(picture)) panels.push_back(Panel(*panel, picture.limit, 1.08 * most).svg());
  return panels;
}

std::string memory_svg(const MemoryPicture& picture) {
  std::vector<std::string> panels = memory_panels(picture);
  std::string note =
      panels.size() < picture.panels.size() ? fmt::format("{} of {} stages", panels.size(), picture.panels.size()) : "";
  return svg_grid(panels, {.title = picture.title, .note = std::move(note), .each = {kWidth, kHeight}});
}

}  // namespace sextant
