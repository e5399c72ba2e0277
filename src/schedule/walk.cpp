#include "schedule/walk.h"

#include <algorithm>
#include <optional>
#include <span>

namespace sextant {

namespace {

Need of_stage(const PipelineSchedule& s, RegionKind kind, int stage, int microbatch) {
  return {rank_of_stage(s.shape, s.placement, stage), {kind, chunk_of_stage(s.shape, stage), microbatch}};
}

class Walker {
 public:
  Walker(const PipelineSchedule& schedule, const Durations& durations, int gradient_slots)
      : schedule_(schedule),
        durations_(durations),
        gradient_slots_(gradient_slots),
        defers_weights_(schedule.defers_weights()),
        times_(3 * static_cast<size_t>(schedule.shape.stages()) * static_cast<size_t>(schedule.shape.microbatches)) {
    done_.ranks.resize(schedule.ranks.size());
  }

  ScheduleWalk run() {
    for (int rank = schedule_.shape.ranks - 1; rank >= 0; --rank) awake_.push_back(rank);
    while (!awake_.empty()) {
      int rank = awake_.back();
      awake_.pop_back();
      while (step(rank)) {
      }
    }
    return std::move(done_);
  }

 private:
  struct Time {
    double start = 0, end = -1;  // the end is −1 while it has not run
  };

  // Runs the next unit of a rank if it may start, and wakes the ranks that can be waiting for it.
  bool step(int rank) {
    auto& done = done_.ranks[static_cast<size_t>(rank)];
    std::span<const Action> unit =
        leading_unit(std::span(schedule_.ranks[static_cast<size_t>(rank)]).subspan(done.size()));
    if (unit.empty()) return false;
    std::optional<double> start = earliest_start(rank, unit);
    if (!start) return false;
    if (!done.empty()) start = std::max(*start, done.back().end);
    Time time{*start, *start + seconds(rank, unit)};
    for (const Action& action : unit) {
      time_of(rank, action) = time;
      done.push_back({action, time.start, time.end});
      wake_neighbours(rank, action);
    }
    return true;
  }

  std::optional<double> earliest_start(int rank, std::span<const Action> unit) {
    double start = 0;
    for (size_t i = 0; i < unit.size(); ++i)
      for (const Need& need : needs_from_elsewhere(schedule_, rank, unit, i, gradient_slots_)) {
        const Time& time = time_of(need.rank, need.action);
        if (time.end < 0) return std::nullopt;
        double message = need.rank == rank ? 0 : durations_.message;
        start = std::max(start, need.until == Need::Until::ended ? time.end + message : time.start);
      }
    return start;
  }

  double seconds(int rank, std::span<const Action> unit) const {
    double sum = 0;
    for (const Action& action : unit) sum += seconds(rank, action);
    return is_pair(unit) ? std::max(0.0, sum - durations_.pair_saves) : sum;
  }

  double seconds(int rank, const Action& action) const {
    auto stage = static_cast<size_t>(stage_of(schedule_.shape, schedule_.placement, rank, action.chunk));
    switch (action.region) {
      case RegionKind::forward:
        return durations_.forward[stage];
      case RegionKind::backward:
        return durations_.backward[stage] + (defers_weights_ ? 0 : durations_.weight[stage]);
      default:
        return durations_.weight[stage];
    }
  }

  void wake_neighbours(int rank, const Action& action) {
    int stage = stage_of(schedule_.shape, schedule_.placement, rank, action.chunk);
    for (int neighbour : {stage - 1, stage + 1})
      if (neighbour >= 0 && neighbour < schedule_.shape.stages())
        awake_.push_back(rank_of_stage(schedule_.shape, schedule_.placement, neighbour));
  }

  Time& time_of(int rank, const Action& action) {
    auto stage = static_cast<size_t>(stage_of(schedule_.shape, schedule_.placement, rank, action.chunk));
    auto stages = static_cast<size_t>(schedule_.shape.stages());
    auto microbatches = static_cast<size_t>(schedule_.shape.microbatches);
    return times_[(static_cast<size_t>(action.region) * stages + stage) * microbatches +
                  static_cast<size_t>(action.microbatch)];
  }

  const PipelineSchedule& schedule_;
  const Durations& durations_;
  int gradient_slots_;
  bool defers_weights_;
  std::vector<Time> times_;  // of F, B, W of every stage and microbatch
  std::vector<int> awake_;   // ranks that may be able to go on
  ScheduleWalk done_;
};

}  // namespace

std::vector<Need> needs(const PipelineSchedule& s, int rank, const Action& action, int gradient_slots) {
  int stage = stage_of(s.shape, s.placement, rank, action.chunk), m = action.microbatch;
  const int stages = s.shape.stages();
  bool has_before = has_stage_before(s.shape, s.placement, stage);
  bool has_after = stage + 1 < stages && has_stage_before(s.shape, s.placement, stage + 1);
  std::vector<Need> all;
  switch (action.region) {
    case RegionKind::forward:
      if (has_before) all.push_back(of_stage(s, RegionKind::forward, stage - 1, m));
      break;
    case RegionKind::backward:
      all.push_back(of_stage(s, RegionKind::forward, stage, m));
      if (has_after) all.push_back(of_stage(s, RegionKind::backward, stage + 1, m));
      if (has_before && m - s.first_microbatch(action.chunk) >= gradient_slots) {
        all.push_back(of_stage(s, RegionKind::backward, stage - 1, m - gradient_slots));
        all.back().until = Need::Until::started;
      }
      break;
    default:
      all.push_back(of_stage(s, RegionKind::backward, stage, m));
  }
  return all;
}

std::vector<Need> needs_from_elsewhere(const PipelineSchedule& schedule, int rank, std::span<const Action> unit,
                                       size_t part, int gradient_slots) {
  std::vector<Need> all = needs(schedule, rank, unit[part], gradient_slots);
  // W may stand behind its own B.
  std::erase_if(all, [&](const Need& need) {
    return unit[part].region == RegionKind::weight && need.rank == rank &&
           std::ranges::any_of(unit.first(part), [&](const Action& a) { return same_work(a, need.action); });
  });
  return all;
}

ScheduleWalk walk(const PipelineSchedule& schedule, const Durations& durations, int gradient_slots) {
  return Walker(schedule, durations, gradient_slots).run();
}

}  // namespace sextant
