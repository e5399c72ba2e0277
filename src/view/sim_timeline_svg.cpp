#include "view/sim_timeline_svg.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "view/svg.h"
#include "view/trace_blocks.h"

namespace sextant {

namespace {

// px
constexpr double kLeft = 70, kRight = 66, kWidth = 864, kRow = 26, kThinRow = 9, kBetweenLanes = 2, kGap = 9,
                 kBelow = 44;
constexpr double kLegendRow = 20, kLegendTop = 52;
constexpr double kThinnest = 0.4;  // what is less wide is not drawn
constexpr size_t kMostRanks = 32;  // of more, the first and the last are drawn
constexpr size_t kLastRanks = 8;

struct Drawn {
  std::vector<int> ranks;
  size_t left_out = 0;
};

Drawn choose_ranks(const Trace& trace) {
  std::set<int> all;
  for (const Event& event : trace) all.insert(event.rank);
  Drawn drawn{{all.begin(), all.end()}};
  if (all.size() <= kMostRanks) return drawn;
  drawn.left_out = all.size() - kMostRanks;
  auto from = drawn.ranks.begin() + (kMostRanks - kLastRanks);
  drawn.ranks.erase(from, from + static_cast<std::ptrdiff_t>(drawn.left_out));
  return drawn;
}

Trace events_of(const Trace& trace, const std::vector<int>& ranks) {
  Trace kept;
  for (const Event& event : trace)
    if (std::binary_search(ranks.begin(), ranks.end(), event.rank)) kept.push_back(event);
  return kept;
}

class Picture {
 public:
  Picture(TraceBlocks blocks, Drawn drawn, const SimTimelineText& text)
      : blocks_(std::move(blocks)),
        text_(text),
        ranks_(std::move(drawn.ranks)),
        left_out_(drawn.left_out),
        length_(std::max(blocks_.end_s, 1e-12)) {
    in_ms_ = length_ < 2;
    place_rows();
  }

  std::string svg() {
    Svg svg({kLeft + kWidth + kRight, bottom_ + kBelow}, text_.title);
    svg_ = &svg;
    svg.define_hatch("waiting");
    title();
    legend();
    axis();
    for (const Row& row : rows_) draw(row);
    for (int rank : ranks_) name_rank(rank);
    if (left_out_ > 0)
      svg.put("<text class=\"quiet\" x=\"{:.1f}\" y=\"{:.1f}\">… {} more, left out …</text>\n", kLeft, left_out_y_,
              left_out_);
    return std::move(svg).finish();
  }

 private:
  struct Row {
    const TraceLane* lane;
    double y, height;
    bool compute;
  };

  void place_rows() {
    double x = kLeft, rows = 1;
    for (const TraceKind& kind : blocks_.kinds) {
      x += 33 + 6.3 * static_cast<double>(kind.name.size());
      if (x > kLeft + kWidth - 120) x = kLeft, ++rows;
    }
    double y = kLegendTop + kLegendRow * rows + 14;
    top_ = y;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      if (left_out_ > 0 && i == kMostRanks - kLastRanks) left_out_y_ = y + 12, y += 24;
      middle_[ranks_[i]] = y + kRow / 2;
      for (const TraceLane& lane : blocks_.lanes) {
        if (lane.rank != ranks_[i]) continue;
        bool compute = lane.lane == "compute";
        rows_.push_back({&lane, y, compute ? kRow : kThinRow, compute});
        y += rows_.back().height + kBetweenLanes;
      }
      y += kGap;
    }
    bottom_ = y;
  }

  double x(double seconds) const { return kLeft + seconds / length_ * kWidth; }
  std::string time(double seconds) const {
    return in_ms_ ? fmt::format("{:.4g} ms", 1e3 * seconds) : fmt::format("{:.4g} s", seconds);
  }
  static std::string look(size_t kind) { return fmt::format("class=\"c{}\"", kind % 10); }

  size_t colour(size_t kind) const { return timeline_colour(blocks_.kinds, kind); }

  void title() {
    std::string each =
        blocks_.each == BlockOf::moment
            ? "each column by shares of what happens in it"
            : fmt::format("a block for each {}",
                          blocks_.each == BlockOf::microbatch ? "pass of a microbatch" : name_of(blocks_.each));
    svg_->put(
        "<text class=\"title\" x=\"{:.1f}\" y=\"22\">{}</text><text class=\"quiet\" x=\"{:.1f}\" y=\"40\">{} events, "
        "{}; below each row "
        "the messages beside it</text>\n",
        kLeft, escaped(text_.title), kLeft, blocks_.events, each);
  }

  void legend() {
    double at = kLeft, y = kLegendTop + 14;
    for (size_t kind = 0; kind < blocks_.kinds.size(); ++kind) {
      std::string word = blocks_.kinds[kind].name == "weight" ? "weight gradient" : blocks_.kinds[kind].name;
      at = svg_->legend_entry(at, y, look(colour(kind)), word);
      if (at > kLeft + kWidth - 120) at = kLeft, y += kLegendRow;
    }
    svg_->legend_entry(at, y, "fill=\"url(#waiting)\"", "waiting");
  }

  void axis() {
    double unit = in_ms_ ? 1e-3 : 1, step = tick_step(length_ / unit);
    for (int i = 0; i * step * unit <= length_ * (1 + 1e-9); ++i)
      svg_->put(
          "<line class=\"grid\" x1=\"{0:.2f}\" y1=\"{1:.1f}\" x2=\"{0:.2f}\" y2=\"{2:.1f}\"/>"
          "<text class=\"quiet\" x=\"{0:.2f}\" y=\"{3:.1f}\" text-anchor=\"middle\">{4:.6g}</text>\n",
          x(i * step * unit), top_ - 6, bottom_, bottom_ + 15, i * step);
    svg_->put("<text class=\"quiet\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">time ({})</text>\n",
              kLeft + kWidth / 2, bottom_ + 33, in_ms_ ? "ms" : "s");
  }

  void name_rank(int rank) {
    svg_->put("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{} {}</text>\n", kLeft - 10, middle_[rank] + 4,
              escaped(text_.row), rank);
  }

  void draw(const Row& row) {
    double done = 0;  // until when the row is filled
    for (const TraceBlock& block : row.lane->blocks) {
      if (row.compute) wait(row, done, block.start_s);
      draw(row, block);
      done = std::max(done, block.end_s);
    }
    if (!row.compute) return;
    wait(row, done, length_);
    svg_->put("<text class=\"quiet\" x=\"{:.1f}\" y=\"{:.1f}\">{:.1f} %<title>of the step it computes</title></text>\n",
              kLeft + kWidth + 8, row.y + row.height / 2 + 4, 100 * row.lane->computing_s / length_);
  }

  void wait(const Row& row, double from, double to) {
    double width = x(to) - x(from);
    if (width < kThinnest) return;
    svg_->put(
        "<rect fill=\"url(#waiting)\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\"><title>waits "
        "{}</title></rect>\n",
        x(from), row.y, width, row.height, time(to - from));
  }

  // The parts of a block are drawn in it as layers, each as high as its share of the time.
  void draw(const Row& row, const TraceBlock& block) {
    double width = std::max(x(block.end_s) - x(block.start_s), kThinnest), left = x(block.start_s), y = row.y;
    double whole = std::max(block.length(), block.busy());
    svg_->put("<g><title>{}</title>", tooltip(block));
    for (size_t kind = 0; kind < block.seconds.size(); ++kind) {
      double height = row.height * block.seconds[kind] / whole;
      if (height < 0.02 * row.height) continue;
      svg_->put("<rect {} x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"/>", look(colour(kind)), left, y,
                width, height);
      y += height;
    }
    double idle = row.y + row.height - y;
    if (row.compute && idle >= 0.02 * row.height)
      svg_->put("<rect fill=\"url(#waiting)\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"/>", left, y,
                width, idle);
    if (row.compute && width > 4 && blocks_.each != BlockOf::moment)
      svg_->put(
          "<rect class=\"box\" stroke-opacity=\"0.5\" stroke-width=\"0.5\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" "
          "height=\"{:.1f}\"/>",
          left, row.y, width, row.height);
    std::string number = fmt::format("{}", block.first_microbatch);
    if (row.compute && blocks_.each == BlockOf::microbatch && block.label != "update" &&
        width > 3 + 5.6 * static_cast<double>(number.size()))
      svg_->put("<text class=\"on\" font-size=\"10\" x=\"{:.2f}\" y=\"{:.1f}\">{}</text>", left + width / 2,
                row.y + row.height / 2, number);
    svg_->put("</g>\n");
  }

  std::string tooltip(const TraceBlock& block) const {
    std::string out;
    if (!block.label.empty()) out += escaped(shortened(block.label, 120)) + ", ";
    bool one = block.first_microbatch == block.last_microbatch;
    out += one ? fmt::format("microbatch {}", block.first_microbatch)
               : fmt::format("microbatches {} to {}", block.first_microbatch, block.last_microbatch);
    if (block.events > 1) out += fmt::format(", {} events", block.events);
    out += fmt::format("; from {}, {}", time(block.start_s), time(block.length()));
    for (size_t kind = 0; kind < block.seconds.size(); ++kind)
      if (block.events > 1 && block.seconds[kind] > 0)
        out += fmt::format("\n{}: {}", escaped(blocks_.kinds[kind].name), time(block.seconds[kind]));
    return out;
  }

  TraceBlocks blocks_;
  const SimTimelineText& text_;
  std::vector<int> ranks_;  // that are drawn
  size_t left_out_;
  double length_;  // seconds
  bool in_ms_ = true;
  std::map<int, double> middle_;  // px, of a rank's row
  std::vector<Row> rows_;
  double top_ = 0, bottom_ = 0, left_out_y_ = 0;  // px
  Svg* svg_ = nullptr;
};

}  // namespace

size_t timeline_colour(const std::vector<TraceKind>& kinds, size_t kind) {
  const TraceKind& k = kinds[kind];
  if (k.name == "forward") return 0;
  if (k.name == "backward") return 1;
  if (k.name == "weight") return 2;
  if (k.name == "update") return 3;
  if (!k.message) return 8;
  size_t before = 0;
  for (size_t i = 0; i < kind; ++i) before += kinds[i].message;
  constexpr std::array<size_t, 6> kOfMessages = {5, 6, 7, 4, 9, 8};
  return kOfMessages[before % kOfMessages.size()];
}

std::string sim_timeline_svg(const Trace& trace, const SimTimelineText& text) {
  Drawn drawn = choose_ranks(trace);
  TraceBlocks blocks = cut_into_blocks(drawn.left_out > 0 ? events_of(trace, drawn.ranks) : trace);
  return Picture(std::move(blocks), std::move(drawn), text).svg();
}

}  // namespace sextant
