// PipelineSchedule: the order in which each pipeline rank runs the F, B and W of its chunks over the microbatches. One
// file per schedule, each a pure function of the shape; check.h proves that the ranks of one fit together, timing.h
// simulates it.
//
// The model is cut into ranks × chunks stages, in order. F of stage s needs F of s−1, B of s needs F of s and B of s+1
// (the last stage only its F), W of s needs B of s. A schedule without W runs weight gradients inside B. On each rank
// the F of a chunk run in microbatch order, and so do its B and its W: memory planning relies on it.
//
// Actions may run as one unit (Action::with_next): B and its own W, which is a whole backward in a schedule that defers
// some of them, and a pair, F beside the B of another microbatch, with or without that one's W. A unit starts when
// everything that its parts need from elsewhere is there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"

namespace sextant {

struct PipelineShape {
  int ranks = 1;
  int chunks = 1;  // stages on each rank
  int microbatches = 1;

  int stages() const { return ranks * chunks; }
  bool operator==(const PipelineShape&) const = default;
};

// Which rank holds which stage. loop: stage s on rank s mod ranks. v: odd chunks run backwards through the ranks, so
// that the last stage of one chunk and the first of the next are on the same rank. both_ways: two copies of the model
// run through the ranks in opposite directions, each over half of the microbatches; chunk 0 of rank r is stage r of the
// first, chunk 1 stage ranks−1−r of the second. Stages of the second copy are numbered behind those of the first.
// crossed_v: what both_ways is to the programs that run it, as folded.h explains; the stages are those of v.
enum class StagePlacement : uint8_t { loop, v, both_ways, crossed_v };

struct PipelineSchedule {
  std::string name;
  PipelineShape shape;
  StagePlacement placement = StagePlacement::loop;
  std::vector<std::vector<Action>> ranks;  // per rank, in issue order; forward, backward and weight only

  bool defers_weights() const;  // whether it has W actions
  // The microbatches of a chunk: all of them, but where two copies share them.
  int first_microbatch(int chunk) const;
  int end_microbatch(int chunk) const;
  bool operator==(const PipelineSchedule&) const = default;
};

int stage_of(const PipelineShape& shape, StagePlacement placement, int rank, int chunk);
int rank_of_stage(const PipelineShape& shape, StagePlacement placement, int stage);
int chunk_of_stage(const PipelineShape& shape, int stage);

// Whether a stage gets its input from the one that is numbered before it.
bool has_stage_before(const PipelineShape& shape, StagePlacement placement, int stage);

// By name (schedules.h lists them). UserError (place = `place`) for an unknown name and for a shape the schedule is not
// defined for, saying which shapes are.
PipelineSchedule make_schedule(std::string_view name, const PipelineShape& shape,
                               std::string_view place = "pipeline.schedule");

struct ScheduleDef;
PipelineSchedule make_schedule(const ScheduleDef& def, const PipelineShape& shape,
                               std::string_view place = "pipeline.schedule");

// The same order of F and B, one by one and with weight gradients inside B: what takes the least memory.
PipelineSchedule with_whole_backwards(PipelineSchedule schedule);

bool has_pairs(const PipelineSchedule& schedule);  // whether a forward runs beside a backward

std::string name_of(const Action& action);  // "F 0 3": kind, chunk, microbatch

}  // namespace sextant
