#include "schedule/unit_walk.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "schedule/walk.h"

namespace sextant {

namespace {

class UnitWalk {
 public:
  UnitWalk(const PipelineSchedule& schedule, const TimesOfUnit& times)
      : schedule_(schedule),
        times_(times),
        place_(schedule.ranks.size()),
        ends_(schedule.ranks.size()),
        arrivals_(2 * static_cast<size_t>(schedule.shape.stages()) * static_cast<size_t>(schedule.shape.microbatches),
                  kNotYet) {}

  std::vector<double> run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = schedule_.shape.ranks - 1; rank >= 0; --rank)
        while (step(rank)) moved = true;
    }
    for (size_t rank = 0; rank < place_.size(); ++rank)
      BUG_IF(place_[rank] < schedule_.ranks[rank].size(), "schedule {} was not checked: rank {} stops", schedule_.name,
             rank);
    return std::move(ends_);
  }

 private:
  static constexpr double kNotYet = -1;

  // Of F and B: when what they make has come to where it is needed.
  double& arrival(int rank, const Action& action) {
    auto stage = static_cast<size_t>(stage_of(schedule_.shape, schedule_.placement, rank, action.chunk));
    auto stages = static_cast<size_t>(schedule_.shape.stages());
    return arrivals_[(static_cast<size_t>(action.region) * stages + stage) *
                         static_cast<size_t>(schedule_.shape.microbatches) +
                     static_cast<size_t>(action.microbatch)];
  }

  // When all that a part needs of other ranks is there; what its own rank makes stands before it.
  std::optional<double> received(int rank, std::span<const Action> unit, size_t part) {
    double at = 0;
    if (unit[part].region == RegionKind::weight) return at;
    for (const Need& need : needs_from_elsewhere(schedule_, rank, unit, part, kUnlimitedSlots)) {
      double there = arrival(need.rank, need.action);
      if (there == kNotYet) return std::nullopt;
      if (need.rank != rank) at = std::max(at, there);
    }
    return at;
  }

  bool step(int rank) {
    auto index = static_cast<size_t>(rank);
    std::span<const Action> unit = leading_unit(std::span(schedule_.ranks[index]).subspan(place_[index]));
    if (unit.empty()) return false;
    std::optional<double> first = received(rank, unit, 0), second = 0;
    if (is_pair(unit)) second = received(rank, unit, 1);
    if (!first || !second) return false;
    UnitTimes times = times_(rank, unit);
    double alone = std::max(ends_[index], *first), start = alone;
    if (is_pair(unit)) start = std::max(start, *second - times.backward_received);
    for (const Action& action : unit) {
      if (action.region == RegionKind::forward)
        arrival(rank, action) = (times.forward_sent_behind ? start : alone) + times.forward_arrives;
      if (action.region == RegionKind::backward) arrival(rank, action) = start + times.backward_arrives;
    }
    ends_[index] = start + times.seconds;
    place_[index] += unit.size();
    return true;
  }

  const PipelineSchedule& schedule_;
  const TimesOfUnit& times_;
  std::vector<size_t> place_;  // by rank: the first action that has not run
  std::vector<double> ends_;   // by rank
  std::vector<double> arrivals_;
};

}  // namespace

std::vector<double> earliest_ends(const PipelineSchedule& schedule, const TimesOfUnit& times) {
  return UnitWalk(schedule, times).run();
}

}  // namespace sextant
