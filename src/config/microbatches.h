// How a step's sequences are cut into microbatches.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "config/run_config.h"

namespace sextant {

// Whether all layouts of the data are to give the same bits.
inline bool is_reproducible_on_meshes(const RunConfig& run) {
  return run.train.reproducible == Reproducible::mesh;
}

// Of one rank and step, where the data is split among so many ranks. Reproducible runs may have sequences that do not
// divide: the last microbatch of some ranks is then empty.
inline int64_t microbatches_per_rank(const RunConfig& run, int64_t data_ranks) {
  int64_t at_once = run.batch.microbatch * data_ranks;
  return is_reproducible_on_meshes(run) ? ceil_div(run.batch.sequences, at_once) : run.batch.sequences / at_once;
}

}  // namespace sextant
