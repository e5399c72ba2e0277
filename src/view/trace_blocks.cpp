#include "view/trace_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>

namespace sextant {

namespace {

constexpr std::array<std::string_view, 4> kPhases = {"forward", "backward", "weight", "update"};
// A wait that can be seen is drawn where it is, not as a share of a block.
constexpr double kVisibleGap = 1.0 / 600;

std::string kind_name(const Event& event) {
  if (!event.axes.empty()) return "messages along " + event.axes;
  return event.phase.empty() ? "compute" : event.phase;
}

// Phases in the order of a step, then everything else by name.
std::vector<TraceKind> kinds_of(const Trace& trace) {
  std::map<std::string, bool> found;
  const Event* before = nullptr;
  for (const Event& event : trace) {
    if (before && before->axes == event.axes && before->phase == event.phase) continue;
    found[kind_name(event)] = !event.axes.empty();
    before = &event;
  }
  std::vector<TraceKind> kinds;
  auto take = [&](const std::string& name) {
    if (auto at = found.find(name); at != found.end()) kinds.push_back({at->first, at->second}), found.erase(at);
  };
  for (std::string_view phase : kPhases) take(std::string(phase));
  take("compute");
  for (const auto& [name, message] : found) kinds.push_back({name, message});
  return kinds;
}

// "layers.3" of "layers.3.attn.qkv", "head" of "head.backward".
std::string layer_of(const std::string& path) {
  size_t dot = path.find('.');
  if (path.starts_with("layers.")) dot = path.find('.', dot + 1);
  return path.substr(0, dot);
}

std::string label_of(const Event& event, BlockOf each) {
  switch (each) {
    case BlockOf::op:
      return fmt::format("{} ({})", event.path, event.name);
    case BlockOf::layer:
      return fmt::format("{}, {}", layer_of(event.path), event.phase.empty() ? "compute" : event.phase);
    case BlockOf::microbatch:
      return event.phase.empty() ? "compute" : event.phase;
    case BlockOf::moment:
      break;
  }
  return {};
}

class Cutter {
 public:
  Cutter(const Trace& trace, const TraceBlocks& into) : end_s_(into.end_s) {
    for (size_t i = 0; i < into.kinds.size(); ++i) kind_index_[into.kinds[i].name] = i;
    for (const Event& event : trace)
      if (event.end_s > event.start_s)
        by_lane_[{event.rank, event.lane != "compute", event.lane}].push_back({&event, kind_of(event)});
    for (auto& [lane, events] : by_lane_)
      std::stable_sort(events.begin(), events.end(),
                       [](const KindEvent& a, const KindEvent& b) { return a.event->start_s < b.event->start_s; });
  }

  size_t lanes() const { return by_lane_.size(); }

  // Nothing where a lane has more blocks than `most`: a step has far more ops than a picture has room for.
  std::optional<std::vector<TraceLane>> cut(BlockOf each, size_t most) const {
    std::vector<TraceLane> lanes;
    for (const auto& [key, events] : by_lane_) {
      if (each == BlockOf::op && events.size() > most) return std::nullopt;
      TraceLane lane{.rank = std::get<0>(key), .lane = std::get<2>(key), .blocks = {}};
      for (const KindEvent& at : events) {
        if (at.event->axes.empty()) lane.computing_s += at.event->end_s - at.event->start_s;
        each == BlockOf::moment ? spread(lane, at, most) : append(lane, at, each);
        if (lane.blocks.size() > most) return std::nullopt;
      }
      std::erase_if(lane.blocks, [](const TraceBlock& block) { return block.events == 0; });
      lanes.push_back(std::move(lane));
    }
    return lanes;
  }

 private:
  struct KindEvent {
    const Event* event;
    size_t kind;
  };

  // Events that follow each other are mostly of one kind, whose name is not made anew.
  size_t kind_of(const Event& event) {
    if (!before_ || before_->event->axes != event.axes || before_->event->phase != event.phase)
      before_ = {&event, kind_index_.at(kind_name(event))};
    return before_->kind;
  }

  void append(TraceLane& lane, const KindEvent& at, BlockOf each) const {
    const Event& event = *at.event;
    std::string label = label_of(event, each);
    TraceBlock* last = lane.blocks.empty() ? nullptr : &lane.blocks.back();
    bool same = last && each != BlockOf::op && last->label == label && last->first_microbatch == event.step &&
                event.start_s - last->end_s < kVisibleGap * end_s_;
    if (!same) last = &lane.blocks.emplace_back(new_block(event.start_s, event.start_s, std::move(label)));
    add(*last, at, event.end_s - event.start_s);
    last->end_s = std::max(last->end_s, event.end_s);
  }

  // Over equal slices of the step, each with its share of the event.
  void spread(TraceLane& lane, const KindEvent& which, size_t moments) const {
    const Event& event = *which.event;
    double slice = end_s_ / static_cast<double>(moments);
    while (lane.blocks.size() < moments) {
      auto at = static_cast<double>(lane.blocks.size());
      lane.blocks.push_back(new_block(at * slice, (at + 1) * slice, {}));
    }
    auto at = std::min(static_cast<size_t>(std::max(0.0, event.start_s / slice)), moments - 1);
    for (; at < moments && lane.blocks[at].start_s < event.end_s; ++at) {
      TraceBlock& block = lane.blocks[at];
      double inside = std::min(block.end_s, event.end_s) - std::max(block.start_s, event.start_s);
      if (inside > 0) add(block, which, inside);
    }
  }

  TraceBlock new_block(double start, double end, std::string label) const {
    return {.start_s = start,
            .end_s = end,
            .seconds = std::vector<double>(kind_index_.size(), 0.0),
            .label = std::move(label)};
  }

  static void add(TraceBlock& block, const KindEvent& at, double seconds) {
    const Event& event = *at.event;
    if (block.events++ == 0) block.first_microbatch = block.last_microbatch = event.step;
    block.first_microbatch = std::min(block.first_microbatch, event.step);
    block.last_microbatch = std::max(block.last_microbatch, event.step);
    block.seconds[at.kind] += seconds;
  }

  double end_s_;
  std::map<std::string, size_t> kind_index_;
  std::optional<KindEvent> before_;
  std::map<std::tuple<int, bool, std::string>, std::vector<KindEvent>> by_lane_;
};

bool within(const std::vector<TraceLane>& lanes, const BlockLimits& limits) {
  size_t all = 0;
  for (const TraceLane& lane : lanes) {
    if (lane.blocks.size() > limits.per_lane) return false;
    all += lane.blocks.size();
  }
  return all <= limits.in_all;
}

}  // namespace

double TraceBlock::busy() const {
  double sum = 0;
  for (double part : seconds) sum += part;
  return sum;
}

std::string name_of(BlockOf each) {
  switch (each) {
    case BlockOf::op:
      return "op";
    case BlockOf::layer:
      return "layer";
    case BlockOf::microbatch:
      return "microbatch";
    case BlockOf::moment:
      return "moment";
  }
  return {};
}

TraceBlocks cut_into_blocks(const Trace& trace, const BlockLimits& limits) {
  TraceBlocks out{.kinds = kinds_of(trace), .lanes = {}, .events = trace.size()};
  for (const Event& event : trace) out.end_s = std::max(out.end_s, event.end_s);
  Cutter cutter(trace, out);
  for (BlockOf each : {BlockOf::op, BlockOf::layer, BlockOf::microbatch}) {
    if (each < limits.finest) continue;
    std::optional<std::vector<TraceLane>> lanes = cutter.cut(each, limits.per_lane);
    if (!lanes || !within(*lanes, limits)) continue;
    out.lanes = std::move(*lanes), out.each = each;
    return out;
  }
  out.each = BlockOf::moment;
  size_t moments = std::clamp<size_t>(limits.in_all / std::max<size_t>(1, cutter.lanes()), 1, limits.per_lane);
  out.lanes = cutter.cut(BlockOf::moment, moments).value();
  return out;
}

}  // namespace sextant
