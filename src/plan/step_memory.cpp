#include "plan/step_memory.h"

#include <algorithm>
#include <array>
#include <compare>
#include <map>
#include <optional>

#include "ir/lane.h"
#include "ir/lifetime.h"
#include "plan/buffer_parts.h"

namespace sextant {

namespace {

constexpr std::array<MemoryPart, 6> kPartsOfArena{&MemoryParts::weights,   &MemoryParts::gradients,
                                                  &MemoryParts::optimizer, &MemoryParts::activations,
                                                  &MemoryParts::scratch,   &MemoryParts::communication};

void add_parts(MemoryParts& to, const MemoryParts& more) {
  for (MemoryPart part : kPartsOfArena) to.*part += more.*part;
}

struct OpRange {
  int first = -1, last = -1;  // ops of a region, counted from its first
  int first_of_any = -1;      // likewise, of those that do not run for the last microbatch alone
  void include(int op) { first = first < 0 ? op : std::min(first, op), last = std::max(last, op); }
  void include_of_any(int op) { first_of_any = first_of_any < 0 ? op : std::min(first_of_any, op); }
};

// Where the ops that touch a buffer stand.
struct BufferUse {
  std::vector<std::optional<OpRange>> by_region;
  bool once = false;      // some op touches it for one microbatch only: it serves all of them
  bool fed = false;       // to no forward: it is there from the start of the step
  bool fetched = false;   // it is read when the step has ended
  bool gradient = false;  // it lasts to the end of the step
  bool of_lane = false;   // scratch that ops of the comm lane share through the step
};

// Before an op of an action.
struct Place {
  size_t action = 0, op = 0;
  auto operator<=>(const Place&) const = default;
};

class StepWalk {
 public:
  explicit StepWalk(const Program& program)
      : program_(program),
        part_of_(parts_of_buffers(program)),
        first_action_(program.regions.size(), -1),
        last_action_(program.regions.size(), -1),
        region_of_(program.schedule.size(), -1) {
    for (const Region& region : program.regions) in_region_.emplace_back(region.ops.size() + 1);
    place_actions();
    std::vector<BufferUse> uses = uses_of_buffers();
    for (size_t i = 0; i < uses.size(); ++i) hold(i, uses[i]);
  }

  std::vector<MemoryMoment> moments(size_t most) const {
    size_t ops = 0;
    for (int region : region_of_) ops += region < 0 ? 0 : program_.regions[static_cast<size_t>(region)].ops.size();
    std::vector<MemoryMoment> kept;
    size_t columns = std::min(most, ops), column = 0, at = 0;
    MemoryParts now = held_;
    auto change = at_op_.begin();
    for (size_t a = 0; a < region_of_.size(); ++a) {
      if (region_of_[a] < 0) continue;
      const Region& region = program_.regions[static_cast<size_t>(region_of_[a])];
      const std::vector<MemoryParts>& changes = in_region_[static_cast<size_t>(region_of_[a])];
      for (size_t o = 0; o < region.ops.size(); ++o, ++at) {
        for (; change != at_op_.end() && change->first <= Place{a, o}; ++change) add_parts(now, change->second);
        add_parts(now, changes[o]);
        bool opens = kept.empty() || at * columns / ops != column;
        column = at * columns / ops;
        if (opens)
          kept.push_back({region.ops[o].path, region.kind, now});
        else if (now.total() > kept.back().parts.total())
          kept.back() = {region.ops[o].path, region.kind, now};
      }
      add_parts(now, changes.back());
    }
    return kept;
  }

  // Where nothing changes once, a region's own fullest op is what counts, above what was there before.
  MemoryMoment fullest() const {
    std::vector<RegionPeak> peaks = region_peaks();
    MemoryMoment most;
    MemoryParts now = held_;
    auto look = [&](const Region& region, size_t o, const MemoryParts& parts) {
      if (parts.total() > most.parts.total()) most = {region.ops[o].path, region.kind, parts};
    };
    auto change = at_op_.begin();
    auto change_until = [&](const Place& place) {
      for (; change != at_op_.end() && change->first <= place; ++change) add_parts(now, change->second);
    };
    for (size_t a = 0; a < region_of_.size(); ++a) {
      if (region_of_[a] < 0) continue;
      auto r = static_cast<size_t>(region_of_[a]);
      const Region& region = program_.regions[r];
      change_until({a, 0});
      bool changes_within = change != at_op_.end() && change->first.action == a;
      if (!changes_within && !region.ops.empty()) {
        MemoryParts at_peak = now;
        add_parts(at_peak, peaks[r].at);
        look(region, peaks[r].op, at_peak);
        add_parts(now, peaks[r].whole);
        continue;
      }
      for (size_t o = 0; o < region.ops.size(); ++o) {
        change_until({a, o});
        add_parts(now, in_region_[r][o]);
        look(region, o, now);
      }
      add_parts(now, in_region_[r].back());
    }
    return most;
  }

 private:
  void place_actions() {
    for (size_t a = 0; a < program_.schedule.size(); ++a)
      for (size_t r = 0; r < program_.regions.size(); ++r) {
        const Action& action = program_.schedule[a];
        if (program_.regions[r].kind != action.region || program_.regions[r].chunk != action.chunk) continue;
        region_of_[a] = static_cast<int>(r);
        if (first_action_[r] < 0) first_action_[r] = static_cast<int>(a);
        last_action_[r] = static_cast<int>(a);
      }
  }

  std::vector<BufferUse> uses_of_buffers() const {
    std::vector<BufferUse> uses(program_.buffers.size(), {.by_region = {}});
    for (BufferUse& use : uses) use.by_region.resize(program_.regions.size());
    // A message may be under way behind the op that starts it: lifetimes know until when.
    std::vector<Lifetime> live = lifetimes(program_);
    std::vector<std::vector<int>> touching = regions_touching(program_);
    int begin = 0;
    for (size_t r = 0; r < program_.regions.size(); ++r) {
      const Region& region = program_.regions[r];
      const int ops = static_cast<int>(region.ops.size());
      for (int o = 0; o < ops; ++o) {
        const Op& op = region.ops[static_cast<size_t>(o)];
        auto touch = [&](int32_t buffer, int from, int to) {
          if (buffer < 0) return;
          std::optional<OpRange>& range = uses[static_cast<size_t>(buffer)].by_region[r];
          if (!range) range.emplace();
          range->include(from), range->include(to);
          if (!last_microbatch_only(op)) range->include_of_any(from);
          uses[static_cast<size_t>(buffer)].once |= once_per_step(op);
        };
        const int32_t workspace = workspace_of(static_cast<size_t>(begin) + static_cast<size_t>(o));
        touch(workspace, o, o);
        if (workspace >= 0) uses[static_cast<size_t>(workspace)].of_lane |= on_comm_lane(op);
        for (const auto* ids : {&op.inputs, &op.outputs})
          for (ValueId id : *ids) {
            bool alone = touching[static_cast<size_t>(id)].size() == 1;
            int last = alone ? live[static_cast<size_t>(id)].last - begin : o;
            const Value& value = program_[id];
            // The inputs of a microbatch are in memory when its region begins.
            touch(value.buffer, value.kind == ValueKind::feed ? 0 : o, std::clamp(last, o, ops - 1));
            if (value.buffer < 0) continue;
            BufferUse& use = uses[static_cast<size_t>(value.buffer)];
            use.fetched |= value.kind == ValueKind::fetch;
            use.gradient |= is_step_sum(value.kind);
            int first = touching[static_cast<size_t>(id)].front();
            use.fed |= value.kind == ValueKind::feed &&
                       program_.regions[static_cast<size_t>(first)].kind != RegionKind::forward;
          }
      }
      begin += ops;
    }
    // A message in flight until a region begins counts as touched by the region's first op.
    for (const Value& value : program_.values)
      for (int r : touching[static_cast<size_t>(value.id)]) {
        if (value.buffer < 0) continue;
        std::optional<OpRange>& range = uses[static_cast<size_t>(value.buffer)].by_region[static_cast<size_t>(r)];
        if (!range) range = OpRange{0, 0, 0};
      }
    return uses;
  }

  // -1: the op has none.
  int32_t workspace_of(size_t op) const { return program_.workspaces.empty() ? -1 : program_.workspaces[op]; }

  void hold(size_t buffer_index, const BufferUse& use) {
    const Buffer& buffer = program_.buffers[buffer_index];
    if (buffer.space != MemorySpace::device) return;
    MemoryPart part = part_of_[buffer_index];
    if (is_held_throughout(buffer.kind) || use.of_lane) {
      held_.*part += buffer.total_bytes();
      return;
    }
    // In the order in which a microbatch comes to them.
    std::vector<size_t> regions;
    for (size_t r = 0; r < use.by_region.size(); ++r)
      if (use.by_region[r] && first_action_[r] >= 0) regions.push_back(r);
    if (regions.empty()) return;
    std::ranges::sort(regions, {}, [&](size_t r) { return first_action_[r]; });
    size_t first = regions.front(), last = regions.back();
    // A value that a region makes once may be an input of the update; with several microbatches it is a sum over them.
    bool sums = (use.gradient || program_.regions[last].kind == RegionKind::update) &&
                last_action_[first] > first_action_[first];
    bool of_the_step = use.once || use.fed || use.fetched || sums;
    if (of_the_step) {
      at_op_[begin_of(use, first)].*part += buffer.total_bytes();
      at_op_[end_of(use, regions)].*part -= buffer.total_bytes();
      return;
    }
    in_region_[first][static_cast<size_t>(use.by_region[first]->first)].*part += buffer.bytes;
    if (use.gradient) return;
    in_region_[last][static_cast<size_t>(use.by_region[last]->last) + 1].*part -= buffer.bytes;
  }

  // Values that only the last microbatch makes are not there before.
  Place begin_of(const BufferUse& use, size_t first) const {
    if (use.fed) return {0, 0};
    const OpRange& range = *use.by_region[first];
    bool of_last = range.first_of_any < 0;
    return {static_cast<size_t>(of_last ? last_action_[first] : first_action_[first]),
            static_cast<size_t>(of_last ? range.first : range.first_of_any)};
  }

  // Behind the last op that touches it; what is summed up or read afterwards, at the end of the step.
  Place end_of(const BufferUse& use, const std::vector<size_t>& regions) const {
    if (use.fetched || use.gradient) return {program_.schedule.size(), 0};
    Place end;
    for (size_t r : regions)
      end = std::max(end, Place{static_cast<size_t>(last_action_[r]), static_cast<size_t>(use.by_region[r]->last) + 1});
    return end;
  }

  // Of a region by itself: its fullest op, what begins up to there, and what the whole of it leaves.
  struct RegionPeak {
    size_t op = 0;
    MemoryParts at, whole;
  };
  std::vector<RegionPeak> region_peaks() const {
    std::vector<RegionPeak> peaks;
    for (const std::vector<MemoryParts>& changes : in_region_) {
      RegionPeak peak;
      for (size_t o = 0; o + 1 < changes.size(); ++o) {
        add_parts(peak.whole, changes[o]);
        if (o == 0 || peak.whole.total() > peak.at.total()) peak.op = o, peak.at = peak.whole;
      }
      add_parts(peak.whole, changes.back());
      peaks.push_back(peak);
    }
    return peaks;
  }

  const Program& program_;
  std::vector<MemoryPart> part_of_;
  std::vector<int> first_action_, last_action_;      // of a region; -1: it does not run
  std::vector<int> region_of_;                       // of an action; -1: there is none
  MemoryParts held_;                                 // whatever runs
  std::vector<std::vector<MemoryParts>> in_region_;  // what begins at an op less what ended before, each time
  std::map<Place, MemoryParts> at_op_;               // likewise, once in a step
};

}  // namespace

MemoryMoment fullest_moment(const Program& program) {
  return StepWalk(program).fullest();
}

std::vector<MemoryMoment> step_moments(const Program& program, size_t most) {
  return StepWalk(program).moments(most);
}

}  // namespace sextant
