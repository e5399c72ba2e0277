#include "schedule/pipeline.h"

#include <algorithm>
#include <span>

#include "base/error.h"

namespace sextant {

namespace {

// Odd chunks of a V (crossed or not) and the second copy run backwards: the place of a rank within its chunk and the
// rank at a place are the same mirror.
int mirrored(const PipelineShape& shape, StagePlacement placement, int chunk, int place) {
  return placement != StagePlacement::loop && chunk % 2 == 1 ? shape.ranks - 1 - place : place;
}

}  // namespace

bool PipelineSchedule::defers_weights() const {
  return std::ranges::any_of(ranks, [](const std::vector<Action>& actions) {
    return std::ranges::any_of(actions, [](const Action& a) { return a.region == RegionKind::weight; });
  });
}

int PipelineSchedule::first_microbatch(int chunk) const {
  return placement == StagePlacement::both_ways && chunk == 1 ? shape.microbatches / 2 : 0;
}

int PipelineSchedule::end_microbatch(int chunk) const {
  return placement == StagePlacement::both_ways && chunk == 0 ? shape.microbatches / 2 : shape.microbatches;
}

int stage_of(const PipelineShape& shape, StagePlacement placement, int rank, int chunk) {
  return chunk * shape.ranks + mirrored(shape, placement, chunk, rank);
}

int rank_of_stage(const PipelineShape& shape, StagePlacement placement, int stage) {
  return mirrored(shape, placement, chunk_of_stage(shape, stage), stage % shape.ranks);
}

int chunk_of_stage(const PipelineShape& shape, int stage) {
  return stage / shape.ranks;
}

bool has_stage_before(const PipelineShape& shape, StagePlacement placement, int stage) {
  return placement == StagePlacement::both_ways ? stage % shape.ranks != 0 : stage > 0;
}

PipelineSchedule with_whole_backwards(PipelineSchedule schedule) {
  for (std::vector<Action>& order : schedule.ranks) {
    std::erase_if(order, [](const Action& action) { return action.region == RegionKind::weight; });
    for (Action& action : order) action.with_next = false;
  }
  return schedule;
}

bool has_pairs(const PipelineSchedule& schedule) {
  bool found = false;
  for (const std::vector<Action>& actions : schedule.ranks)
    for_each_unit(actions, [&](std::span<const Action> unit) { found = found || is_pair(unit); });
  return found;
}

std::string name_of(const Action& action) {
  switch (action.region) {
    case RegionKind::forward:
      return fmt::format("F {} {}", action.chunk, action.microbatch);
    case RegionKind::backward:
      return fmt::format("B {} {}", action.chunk, action.microbatch);
    case RegionKind::weight:
      return fmt::format("W {} {}", action.chunk, action.microbatch);
    case RegionKind::update:
      return "Update";
  }
  BUG("region kind {}", static_cast<int>(action.region));
}

}  // namespace sextant
