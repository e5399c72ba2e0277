#include "schedule/pipeline.h"

#include <algorithm>

#include "base/error.h"

namespace sextant {

namespace {

// Odd chunks of a V run backwards: the place of a rank within its chunk and the rank at a place are the same mirror.
int mirrored(const PipelineShape& shape, StagePlacement placement, int chunk, int place) {
  return placement == StagePlacement::v && chunk % 2 == 1 ? shape.ranks - 1 - place : place;
}

}  // namespace

bool PipelineSchedule::defers_weights() const {
  return std::ranges::any_of(ranks, [](const std::vector<Action>& actions) {
    return std::ranges::any_of(actions, [](const Action& a) { return a.region == RegionKind::weight; });
  });
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
