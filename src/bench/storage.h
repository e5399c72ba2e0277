// bench storage: what training does to a file system. A checkpoint is written by all ranks into one file, flushed and
// put in place, and read back by all; token files are read at random places; small files are opened. All ranks call it
// together; rank 0 has the result. Whatever is written lies in one directory of its own, which goes when the benchmark
// ends.
#pragma once

#include <cstdint>
#include <filesystem>

#include "bench/comm/comm_world.h"
#include "bench/result.h"
#include "bench/stop.h"

namespace sextant {

struct StorageRequest {
  std::filesystem::path directory;
  int64_t checkpoint_bytes = 1 << 30;  // of all ranks together
  int64_t token_bytes = 1 << 28;
  int64_t sequence = 2048;    // tokens of one read
  int64_t small_files = 200;  // of each rank
  int repeats = 5;            // of the checkpoint: fewer could not be told from chance when two results are compared
  double interval_s = 1800;   // between checkpoints
};

BenchReport bench_storage(CommWorld& world, const StorageRequest& request, const Watch& watch);

// Cost of saving for a run that waits for every save.
struct SaveLoss {
  double saves_per_day = 0, minutes_per_day = 0;
  double share = 0;  // of the time
};
SaveLoss save_loss(double save_s, double interval_s);

// Asks the system to forget what it has cached of a file; the share of the file that it still holds afterwards, 0 when
// all is gone. RunError when the file cannot be opened.
double drop_cached(const std::filesystem::path& file);

}  // namespace sextant
