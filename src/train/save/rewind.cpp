#include "train/save/rewind.h"

#include <algorithm>

#include "ckpt/checkpoints.h"
#include "ckpt/model_directory.h"

namespace sextant {

namespace fs = std::filesystem;

std::vector<fs::path> rewind_candidates(const fs::path& out, int64_t spike, int64_t steps) {
  std::vector<fs::path> old_enough, younger;
  for (const Checkpoint& checkpoint : list_checkpoints(out, kRunStateFile)) {
    if (checkpoint.step >= spike) continue;
    (checkpoint.step <= spike - steps ? old_enough : younger).push_back(checkpoint.path);
  }
  std::ranges::reverse(old_enough);
  old_enough.insert(old_enough.end(), younger.begin(), younger.end());
  return old_enough;
}

RunState with_samples_left_out(RunState state, int64_t read, int64_t least) {
  int64_t next = std::max(read, state.samples + least);
  state.skipped.push_back({.step = state.step, .first = state.samples, .count = next - state.samples});
  state.samples = next;
  return state;
}

}  // namespace sextant
