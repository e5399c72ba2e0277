// A rewind: the run goes back to an earlier checkpoint of its own and leaves out samples. Which checkpoint, and which
// samples.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "train/save/run_checkpoint.h"

namespace sextant {

// Checkpoints of the run from before step `spike`, best first: the latest that is at least `steps` older, those before
// it from new to old, then those after it.
std::vector<std::filesystem::path> rewind_candidates(const std::filesystem::path& out, int64_t spike, int64_t steps);

// The state of a checkpoint, with the data cursor moved on by at least `least` samples, and to `read` at least: what
// the run had read when it turned back.
RunState with_samples_left_out(RunState state, int64_t read, int64_t least);

}  // namespace sextant
