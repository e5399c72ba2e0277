#include "run/run_target.h"

#include <algorithm>

#include "base/threads.h"
#include "config/microbatches.h"
#include "targets/cpu/cpu_target.h"
#include "targets/cuda/cuda_target.h"

namespace sextant {

Determinism determinism_of(const RunConfig& run) {
  return run.train.deterministic || is_reproducible_on_meshes(run) ? Determinism::repeatable : Determinism::fast;
}

int threads_per_rank(const RunConfig& run, int ranks, int cores) {
  if (cores == 0) cores = core_count();
  int threads = run.train.threads > 0 ? static_cast<int>(run.train.threads) : cores;
  return std::max(1, threads / ranks);
}

Target cuda_target_of(const RunConfig& run) {
  return cuda_target(determinism_of(run));
}

Target cpu_target_of(const RunConfig& run, int ranks, int cores) {
  return cpu_target(threads_per_rank(run, ranks, cores));
}

}  // namespace sextant
