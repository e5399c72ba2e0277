#include "view/timeline_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <span>

#include "view/svg.h"

namespace sextant {

namespace {

// px, at the scale of a small picture; a wide one is seen from further away, and all but the numbers in its boxes grow.
constexpr double kLeft = 72, kRight = 64, kTop = 84, kRow = 30, kGap = 8, kBelow = 48;
constexpr double kWidthAtScaleOne = 1500, kLargestScale = 2;

// Blue, orange and bluish green of Okabe and Ito's palette, lightened so that dark text reads well: they stay apart for
// every common kind of colour blindness.
struct Colour {
  int red, green, blue;
};
constexpr std::array<Colour, 3> kColours = {{{111, 181, 229}, {240, 174, 82}, {96, 190, 160}}};  // F, B, W
constexpr std::array<char, 3> kLetters = {'F', 'B', 'W'};

// The first chunk has the full colour, later ones are lighter.
std::string shade(size_t kind, int chunk, int chunks) {
  double white = chunks > 1 ? 0.62 * chunk / (chunks - 1) : 0;
  auto mix = [&](int channel) { return static_cast<int>(std::lround(channel + (255 - channel) * white)); };
  const Colour& c = kColours[kind];
  return fmt::format("#{:02x}{:02x}{:02x}", mix(c.red), mix(c.green), mix(c.blue));
}

class Drawing {
 public:
  Drawing(const TimedSchedule& run, const TimelineText& text)
      : run_(run), text_(text), length_(std::max(run.makespan(), 1e-12)) {
    double shortest = length_;
    for (const auto& actions : run.ranks)
      for (const TimedAction& a : actions) {
        if (a.end > a.start) shortest = std::min(shortest, a.end - a.start);
        defers_ |= a.action.region == RegionKind::weight;
      }
    // Wide enough for two digits in the shortest box, within what a screen can show.
    width_ = std::clamp(length_ / shortest * 15, 960.0, 3600.0);
    number_size_ = std::clamp(shortest / length_ * width_ / 1.5, 10.0, 13.0);
    scale_ = std::clamp(width_ / kWidthAtScaleOne, 1.0, kLargestScale);
    left_ = kLeft * scale_;
    row_ = kRow * scale_;
    bottom_ = y(run.ranks.size());
  }

  std::string svg() {
    open();
    title();
    legend();
    axis();
    for (size_t rank = 0; rank < run_.ranks.size(); ++rank) row(rank);
    svg_ += "</svg>\n";
    return std::move(svg_);
  }

 private:
  template <typename... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(svg_), format, std::forward<Args>(args)...);
  }

  double x(double seconds) const { return left_ + seconds / length_ * width_; }
  double y(size_t rank) const { return (kTop + static_cast<double>(rank) * (kRow + kGap)) * scale_; }
  double middle(size_t rank) const { return y(rank) + row_ / 2; }

  void open() {
    double width = left_ + width_ + kRight * scale_, height = bottom_ + kBelow * scale_;
    put("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"{2:.1f}\" "
        "fill=\"#26323d\">\n<style>\n",
        width, height, 12 * scale_);
    for (size_t kind = 0; kind < 3; ++kind)
      for (int chunk = 0; chunk < run_.shape.chunks; ++chunk)
        put(".{}{} {{ fill: {}; }}\n", kLetters[kind], chunk, shade(kind, chunk, run_.shape.chunks));
    put("rect.action {{ stroke: #ffffff; stroke-width: 1; }}\nrect.bubble {{ fill: url(#hatch); }}\n"
        "text.number {{ font-size: {:.1f}px; text-anchor: middle; dominant-baseline: central; fill: #16202a; }}\n"
        "text.quiet {{ fill: #5d6b78; }}\n</style>\n"
        "<defs><pattern id=\"hatch\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" "
        "patternTransform=\"rotate(45)\"><rect width=\"7\" height=\"7\" fill=\"#eef0f2\"/>"
        "<rect width=\"2\" height=\"7\" fill=\"#cfd5da\"/></pattern></defs>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        number_size_);
  }

  void title() {
    const PipelineShape& shape = run_.shape;
    std::string title = text_.title;
    if (title.empty())
      title = fmt::format("{}: {} ranks, {} microbatches", run_.name, shape.ranks, shape.microbatches) +
              (shape.chunks > 1 ? fmt::format(", {} chunks a rank", shape.chunks) : "");
    put("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:.1f}\" font-weight=\"bold\">{}"
        "<tspan font-weight=\"normal\" fill=\"#5d6b78\" dx=\"{:.1f}\">bubble {:.1f} %</tspan></text>\n",
        left_, 28 * scale_, 17 * scale_, escaped(title), 14 * scale_, 100 * run_.bubble_fraction());
  }

  // A swatch for each chunk and then the word, kind after kind.
  void legend() {
    constexpr std::array<std::string_view, 3> kWords = {"forward", "backward", "weight gradient"};
    double at = left_;
    auto swatch = [&](std::string_view classes) {
      put("<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>\n", classes, at,
          44 * scale_, 18 * scale_, 14 * scale_);
      at += 18 * scale_;
    };
    auto word = [&](std::string_view text) {
      put("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", at + 6 * scale_, 55 * scale_, text);
      at += (6 + 6.8 * static_cast<double>(text.size()) + 20) * scale_;
    };
    for (size_t kind = 0; kind < (defers_ ? 3u : 2u); ++kind) {
      for (int chunk = 0; chunk < run_.shape.chunks; ++chunk) swatch(fmt::format("{}{}", kLetters[kind], chunk));
      word(kWords[kind]);
    }
    swatch("bubble");
    word("bubble");
    if (run_.shape.chunks > 1) word(fmt::format("chunks 0 to {}: dark to light", run_.shape.chunks - 1));
  }

  void axis() {
    double step = tick_step(length_);
    for (int i = 0; i * step <= length_ * (1 + 1e-9); ++i)
      put("<line x1=\"{0:.2f}\" y1=\"{1:.1f}\" x2=\"{0:.2f}\" y2=\"{2:.1f}\" stroke=\"#dfe4e8\"/>"
          "<text class=\"quiet\" x=\"{0:.2f}\" y=\"{3:.1f}\" text-anchor=\"middle\">{4:.6g}</text>\n",
          x(i * step), y(0) - 6 * scale_, bottom_, bottom_ + 15 * scale_, i * step);
    put("<text class=\"quiet\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">time ({})</text>\n", left_ + width_ / 2,
        bottom_ + 34 * scale_, escaped(text_.time_unit));
  }

  void row(size_t rank) {
    const auto& actions = run_.ranks[rank];
    put("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">rank {}</text>\n", left_ - 12 * scale_,
        middle(rank) + 4 * scale_, rank);
    for (size_t i = 0; i < actions.size();) {
      if (i > 0) bubble(rank, actions[i - 1].end, actions[i].start);
      size_t parts = 1;
      while (actions[i + parts - 1].action.with_next && i + parts < actions.size()) ++parts;
      unit(rank, std::span(actions).subspan(i, parts));
      i += parts;
    }
    double span = run_.span(static_cast<int>(rank));
    if (span > 0)
      put("<text class=\"quiet\" x=\"{:.1f}\" y=\"{:.1f}\">{:.1f} %</text>\n", left_ + width_ + 10 * scale_,
          middle(rank) + 4 * scale_, 100 * run_.bubble(static_cast<int>(rank)) / span);
  }

  void bubble(size_t rank, double start, double end) {
    double width = x(end) - x(start);
    if (width < 0.01) return;  // rounding, not waiting
    put("<rect class=\"bubble\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\"/>\n", x(start), y(rank),
        width, row_);
  }

  // The actions of a unit take the same time: they share the row's height, the first one on top.
  void unit(size_t rank, std::span<const TimedAction> parts) {
    double height = row_ / static_cast<double>(parts.size());
    for (size_t i = 0; i < parts.size(); ++i) box(rank, parts[i], {y(rank) + static_cast<double>(i) * height, height});
  }

  struct Stripe {
    double top, height;  // px
  };

  void box(size_t rank, const TimedAction& timed, const Stripe& stripe) {
    const Action& action = timed.action;
    double width = x(timed.end) - x(timed.start);
    put("<rect class=\"action {}{}\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" rx=\"2\">"
        "<title>{} on rank {}: {:.6g} to {:.6g} {}</title></rect>\n",
        kLetters[static_cast<size_t>(action.region)], action.chunk, x(timed.start), stripe.top, width, stripe.height,
        name_of(action), rank, timed.start, timed.end, escaped(text_.time_unit));
    std::string number = fmt::format("{}", action.microbatch);
    double size = std::min(number_size_, 0.95 * stripe.height), digit = 0.6 * size;  // px, the width of one
    std::string smaller = size < number_size_ ? fmt::format(" style=\"font-size:{:.1f}px\"", size) : "";
    if (static_cast<double>(number.size()) * digit + 2 <= width)
      put("<text class=\"number\"{} x=\"{:.2f}\" y=\"{:.1f}\">{}</text>\n", smaller, x(timed.start) + width / 2,
          stripe.top + stripe.height / 2, number);
  }

  const TimedSchedule& run_;
  const TimelineText& text_;
  double length_;  // seconds
  bool defers_ = false;
  // All in px:
  double width_ = 0;        // of the time axis
  double number_size_ = 0;  // of the microbatch's number in a box
  double scale_ = 1;        // of everything else
  double left_ = 0;         // where the time axis begins
  double row_ = 0;          // a row's height
  double bottom_ = 0;       // below the last row
  std::string svg_;
};

}  // namespace

std::string timeline_svg(const TimedSchedule& run, const TimelineText& text) {
  return Drawing(run, text).svg();
}

}  // namespace sextant
