#include "schedule/check.h"

#include <algorithm>
#include <span>
#include <vector>

#include "base/error.h"
#include "schedule/timing.h"
#include "schedule/walk.h"

namespace sextant {

namespace {

class Checker {
 public:
  Checker(const PipelineSchedule& schedule, std::string_view place)
      : schedule_(schedule), place_(place), kinds_(schedule.defers_weights() ? 3 : 2) {}

  void check_shape() const {
    if (schedule_.placement == StagePlacement::both_ways &&
        (schedule_.shape.chunks != 2 || schedule_.shape.microbatches % 2 != 0))
      fail(fmt::format("{} chunks and {} microbatches both ways", schedule_.shape.chunks, schedule_.shape.microbatches),
           "2 chunks and an even number of microbatches");
    const PipelineShape& shape = schedule_.shape;
    if (shape.ranks < 1 || shape.chunks < 1 || shape.microbatches < 1)
      fail(fmt::format("{} ranks, {} chunks, {} microbatches", shape.ranks, shape.chunks, shape.microbatches),
           "at least one of each");
    if (schedule_.ranks.size() != static_cast<size_t>(shape.ranks))
      fail(fmt::format("{} lists of actions", schedule_.ranks.size()),
           fmt::format("one for each of {} ranks", shape.ranks));
  }

  // Every action once and in order: for each chunk, the next F must be the one after the last F, and so on.
  void check_complete(int rank) const {
    const auto& actions = schedule_.ranks[static_cast<size_t>(rank)];
    auto chunks = static_cast<size_t>(schedule_.shape.chunks);
    if (chunks > actions.size())  // also keeps a count from a hostile file from becoming an allocation
      fail(fmt::format("rank {} has {} actions for {} chunks", rank, actions.size(), chunks),
           "F and B of every chunk and microbatch");
    std::vector<int> next(static_cast<size_t>(kinds_) * chunks);
    for (size_t i = 0; i < next.size(); ++i) next[i] = schedule_.first_microbatch(static_cast<int>(i % chunks));
    for (const Action& action : actions) {
      check_known(rank, action);
      int& expected = next[static_cast<size_t>(action.region) * chunks + static_cast<size_t>(action.chunk)];
      if (action.microbatch < expected)
        fail(fmt::format("rank {} runs {} twice", rank, name_of(action)), "every action once");
      if (action.microbatch > expected)
        fail(fmt::format("rank {} runs {} before {}", rank, name_of(action),
                         name_of({action.region, action.chunk, expected})),
             "F, B and W of a chunk each in microbatch order");
      ++expected;
    }
    for (int kind = 0; kind < kinds_; ++kind)
      for (size_t chunk = 0; chunk < chunks; ++chunk)
        if (int have = next[static_cast<size_t>(kind) * chunks + chunk];
            have < schedule_.end_microbatch(static_cast<int>(chunk)))
          fail(fmt::format("rank {} lacks {}", rank,
                           name_of({static_cast<RegionKind>(kind), static_cast<int>(chunk), have})),
               fmt::format("{} microbatches in every chunk", schedule_.shape.microbatches));
  }

  void check_units(int rank) const {
    std::span<const Action> rest = schedule_.ranks[static_cast<size_t>(rank)];
    while (!rest.empty()) {
      std::span<const Action> unit = leading_unit(rest);
      if (unit.back().with_next || !is_unit(unit))
        fail(fmt::format("rank {} runs {}{} as one", rank, names_of(unit), unit.back().with_next ? " and no more" : ""),
             "one action, B and its own W, or F beside a B with or without that one's W");
      rest = rest.subspan(unit.size());
    }
  }

  void check_ends() const {
    ScheduleWalk done = walk(schedule_, uniform_durations(schedule_.shape));
    for (int rank = 0; rank < schedule_.shape.ranks; ++rank)
      if (!stuck_at(done, rank).empty())
        fail(ring_of_waits(done, rank), "ranks that never wait for each other in a ring");
  }

 private:
  void check_known(int rank, const Action& action) const {
    if (action.region != RegionKind::forward && action.region != RegionKind::backward &&
        action.region != RegionKind::weight)
      fail(fmt::format("rank {} runs {}", rank, name_of(action)), "F, B and W only");
    if (action.chunk < 0 || action.chunk >= schedule_.shape.chunks)
      fail(fmt::format("rank {} runs {}", rank, name_of(action)),
           fmt::format("chunks 0 to {}", schedule_.shape.chunks - 1));
    int first = schedule_.first_microbatch(action.chunk), end = schedule_.end_microbatch(action.chunk);
    if (action.microbatch < first || action.microbatch >= end)
      fail(fmt::format("rank {} runs {}", rank, name_of(action)),
           fmt::format("microbatches {} to {} in chunk {}", first, end - 1, action.chunk));
  }

  static bool is_unit(std::span<const Action> unit) {
    if (unit.size() > 1 && unit.front().region == RegionKind::forward)
      unit = unit.subspan(1);
    else if (unit.size() == 1)
      return true;
    if (unit.front().region != RegionKind::backward) return false;
    Action its_weight{RegionKind::weight, unit.front().chunk, unit.front().microbatch};
    return unit.size() == 1 || (unit.size() == 2 && same_work(unit.back(), its_weight));
  }

  // Names of the actions of a unit for a message; at most kMostParts + 1, because hostile files have long units.
  static std::string names_of(std::span<const Action> unit) {
    std::string text;
    for (const Action& action : unit.first(std::min(unit.size(), kMostParts + 1)))
      text += (text.empty() ? "" : " + ") + name_of(action);
    return unit.size() > kMostParts + 1 ? text + " + …" : text;
  }

  // The unit that a rank does not get past; empty when it has run all.
  std::span<const Action> stuck_at(const ScheduleWalk& done, int rank) const {
    std::span<const Action> list = schedule_.ranks[static_cast<size_t>(rank)];
    return leading_unit(list.subspan(done.ranks[static_cast<size_t>(rank)].size()));
  }

  // Every stuck rank waits for an action of a stuck rank, so following the waits leads into a ring.
  std::string ring_of_waits(const ScheduleWalk& done, int rank) const {
    std::vector<char> seen(schedule_.ranks.size());
    std::string text = fmt::format("rank {}", rank);
    while (!seen[static_cast<size_t>(rank)]) {
      seen[static_cast<size_t>(rank)] = true;
      std::span<const Action> unit = stuck_at(done, rank);
      Need need = unmet(done, rank, unit);
      text += fmt::format(" waits at {} for {} of ", names_of(unit), name_of(need.action));
      text += need.rank == rank ? "its own, which comes later" : fmt::format("rank {}", need.rank);
      if (need.rank != rank && !seen[static_cast<size_t>(need.rank)]) text += ", which";
      rank = need.rank;
    }
    return text;
  }

  Need unmet(const ScheduleWalk& done, int rank, std::span<const Action> unit) const {
    for (size_t part = 0; part < unit.size(); ++part)
      for (const Need& need : needs_from_elsewhere(schedule_, rank, unit, part, kUnlimitedSlots)) {
        const auto& ran = done.ranks[static_cast<size_t>(need.rank)];
        if (std::ranges::none_of(ran, [&](const TimedAction& t) { return same_work(t.action, need.action); }))
          return need;
      }
    BUG("rank {} is stuck at {} without a reason", rank, names_of(unit));
  }

  [[noreturn]] void fail(std::string got, std::string expected) const {
    throw UserError(Complaint{.place = std::string(place_),
                              .got = fmt::format("schedule {}: {}", schedule_.name, got),
                              .expected = std::move(expected)});
  }

  const PipelineSchedule& schedule_;
  std::string_view place_;
  int kinds_;  // F and B, or F, B and W
};

}  // namespace

void check(const PipelineSchedule& schedule, std::string_view place) {
  Checker checker(schedule, place);
  checker.check_shape();
  for (int rank = 0; rank < schedule.shape.ranks; ++rank) {
    checker.check_complete(rank);
    checker.check_units(rank);
  }
  checker.check_ends();
}

}  // namespace sextant
