// Which checkpoints of a run stay: the last ones, every so many steps one, and the best by validation loss
// (checkpoint.keep, keep_every, keep_best); and always the last from which a finite step was made.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "ckpt/checkpoints.h"
#include "config/run_config.h"

namespace sextant {

struct RatedCheckpoint {
  Checkpoint checkpoint;
  std::optional<double> validation_loss;  // measured after its step
};

// Oldest first, as `all` is. `last_finite` is the step of one that stays in any case; -1: none.
std::vector<Checkpoint> superfluous_checkpoints(const std::vector<RatedCheckpoint>& all, const CheckpointSection& keep,
                                                int64_t last_finite);

// Removes those of a run's directory. A checkpoint whose state cannot be read has no validation loss.
void prune_run(const std::filesystem::path& out, const CheckpointSection& keep, int64_t last_finite);

}  // namespace sextant
