// The Programs of a run, from its config: what `plan` prints, `explain` shows and `train` executes are these same
// objects.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "config/run_config.h"
#include "models/model.h"
#include "passes/lower.h"

namespace sextant {

// One Program per pipeline rank. All share one arena: the weights are at the same offsets, and everything that comes
// and goes in one may lie where it does in the other.
struct RunPrograms {
  std::vector<Program> train;
  std::vector<Program> evaluate;  // empty when the run has no validation
  // A step of training in several rounds of rows to experts (mesh.expert_capacity), with everything that is kept from
  // step to step where `train` has it: the fewest rounds first, and last as many as any routing needs. Empty where one
  // round always does.
  struct Repeat {
    int64_t rounds = 1;
    std::vector<Program> programs;
  };
  std::vector<Repeat> repeat;
  // A step of training that also measures its tensors (log.tensor_stats_every), with all else where `train` has it.
  // Empty where none is asked for.
  std::vector<Program> measure;
  int64_t noise_parts = 0;  // in how many parts a microbatch is cut, for the noise scale; 0: it is not measured

  int64_t arena_bytes(int stage_rank, MemorySpace space = MemorySpace::device) const;
};

struct RunShape {
  ModelSpec spec;  // with its vocabulary
  Mesh mesh;       // with an axis for the copies of the model where the schedule has two
  Parallel parallel;
  PipelineSchedule pipeline;          // of the programs; unfolded (schedule/folded.h) is how it is drawn
  std::vector<int> blocks_per_stage;  // empty: balanced
  DropoutRates dropout = {};          // of training
};

// UserError when the mesh asks for what no pass can do, or the schedule does not fit.
RunShape run_shape(const RunConfig& run, const ModelSpec& spec);
// The same on a mesh of one's own: the config's sizes do not count, what it says beside them does.
RunShape run_shape(const RunConfig& run, const ModelSpec& spec, Mesh mesh);

RunPrograms build_programs(const RunConfig& run, const RunShape& shape, const Target& target,
                           const decltype(LowerOptions::observe)& observe = {}, Checks checks = Checks::each_pass);

// Both at once: what plan, search, bench and validation start from.
struct LoweredRun {
  RunShape shape;
  RunPrograms programs;
};
LoweredRun lower_run(const RunConfig& config, const ModelSpec& spec, const Target& target, Checks checks = Checks::end);

Optimizer optimizer_of(const RunConfig& run);

bool has_validation(const RunConfig& run);

// The place of a rank on the pipeline axis: which of the Programs it runs.
int stage_rank_of(const Mesh& mesh, int rank);

}  // namespace sextant
