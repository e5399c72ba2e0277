#include "schedule/folded.h"

#include <algorithm>

#include "base/error.h"

namespace sextant {

int unfolded_rank(const PipelineShape& folded, int position, int copy) {
  return copy == 0 ? position : 2 * folded.ranks - 1 - position;
}

Action unfolded_action(const PipelineShape& folded, int copy, Action action) {
  action.chunk = copy == 0 ? action.chunk : 1 - action.chunk;
  action.microbatch += action.chunk * folded.microbatches;
  return action;
}

PipelineShape unfolded_shape(const PipelineSchedule& schedule) {
  const PipelineShape& half = schedule.shape;
  if (schedule.placement != StagePlacement::crossed_v) return half;
  return {2 * half.ranks, half.chunks, 2 * half.microbatches};
}

PipelineSchedule unfolded(const PipelineSchedule& schedule) {
  if (schedule.placement != StagePlacement::crossed_v) return schedule;
  const PipelineShape& half = schedule.shape;
  PipelineSchedule both{
      .name = schedule.name, .shape = unfolded_shape(schedule), .placement = StagePlacement::both_ways, .ranks = {}};
  both.ranks.resize(static_cast<size_t>(both.shape.ranks));
  for (int position = 0; position < half.ranks; ++position)
    for (int copy : {0, 1})
      for (const Action& action : schedule.ranks[static_cast<size_t>(position)])
        both.ranks[static_cast<size_t>(unfolded_rank(half, position, copy))].push_back(
            unfolded_action(half, copy, action));
  return both;
}

PipelineSchedule folded(const PipelineSchedule& both_ways, std::string_view place) {
  BUG_IF(both_ways.placement != StagePlacement::both_ways, "{} has one copy", both_ways.name);
  const PipelineShape& shape = both_ways.shape;
  auto fail = [&](std::string got, std::string expected) {
    throw UserError(Complaint{.place = std::string(place),
                              .got = fmt::format("schedule {}: {}", both_ways.name, got),
                              .expected = std::move(expected)});
  };
  if (shape.ranks % 2 != 0)
    fail(fmt::format("two copies on {} ranks", shape.ranks), "an even number of ranks, each with two stages");
  PipelineSchedule half{.name = both_ways.name,
                        .shape = {shape.ranks / 2, shape.chunks, shape.microbatches / 2},
                        .placement = StagePlacement::crossed_v,
                        .ranks = {both_ways.ranks.begin(), both_ways.ranks.begin() + shape.ranks / 2}};
  for (std::vector<Action>& actions : half.ranks)
    for (Action& action : actions) action.microbatch -= action.chunk * half.shape.microbatches;
  PipelineSchedule again = unfolded(half);
  for (int rank = shape.ranks / 2; rank < shape.ranks; ++rank) {
    const auto &got = both_ways.ranks[static_cast<size_t>(rank)], &want = again.ranks[static_cast<size_t>(rank)];
    size_t same =
        static_cast<size_t>(std::mismatch(got.begin(), got.end(), want.begin(), want.end()).first - got.begin());
    if (same < got.size())
      fail(
          fmt::format("rank {} runs {} where rank {} does the same for the other copy with {}", rank,
                      name_of(got[same]), shape.ranks - 1 - rank, same < want.size() ? name_of(want[same]) : "nothing"),
          "ranks that hold the same stages to run them in the same order");
  }
  return half;
}

Durations unfolded(const PipelineSchedule& schedule, Durations durations) {
  if (schedule.placement != StagePlacement::crossed_v) return durations;
  for (std::vector<double>* stages : {&durations.forward, &durations.backward, &durations.weight}) {
    const std::vector<double> one = *stages;
    stages->insert(stages->end(), one.begin(), one.end());
  }
  return durations;
}

}  // namespace sextant
