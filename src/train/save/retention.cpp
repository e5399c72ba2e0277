#include "train/save/retention.h"

#include <algorithm>

#include "base/error.h"
#include "ckpt/model_directory.h"
#include "ckpt/staged_directory.h"
#include "train/save/run_checkpoint.h"

namespace sextant {

namespace {

// The steps of the `count` lowest validation losses; of equals the newest.
std::vector<int64_t> best_steps(const std::vector<RatedCheckpoint>& all, int64_t count) {
  std::vector<const RatedCheckpoint*> rated;
  for (auto at = all.rbegin(); at != all.rend(); ++at)
    if (at->validation_loss) rated.push_back(&*at);
  std::ranges::stable_sort(rated, {}, [](const RatedCheckpoint* one) { return *one->validation_loss; });
  rated.resize(std::min(rated.size(), static_cast<size_t>(count)));
  std::vector<int64_t> steps;
  for (const RatedCheckpoint* one : rated) steps.push_back(one->checkpoint.step);
  return steps;
}

std::optional<double> validation_loss_of(const Checkpoint& checkpoint) {
  try {
    return read_run_state(checkpoint.path).validation_loss;
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
}

}  // namespace

std::vector<Checkpoint> superfluous_checkpoints(const std::vector<RatedCheckpoint>& all, const CheckpointSection& keep,
                                                int64_t last_finite) {
  if (keep.keep == 0) return {};
  std::vector<int64_t> best = best_steps(all, keep.keep_best);
  std::vector<Checkpoint> superfluous;
  for (size_t i = 0; i + static_cast<size_t>(keep.keep) < all.size(); ++i) {
    int64_t step = all[i].checkpoint.step;
    bool stays = step == last_finite || (keep.keep_every > 0 && step % keep.keep_every == 0) ||
                 std::ranges::count(best, step) > 0;
    if (!stays) superfluous.push_back(all[i].checkpoint);
  }
  return superfluous;
}

void prune_run(const std::filesystem::path& out, const CheckpointSection& keep, int64_t last_finite) {
  std::vector<RatedCheckpoint> all;
  for (Checkpoint& checkpoint : list_checkpoints(out, kRunStateFile)) {
    std::optional<double> loss = keep.keep_best > 0 ? validation_loss_of(checkpoint) : std::nullopt;
    all.push_back({std::move(checkpoint), loss});
  }
  for (const Checkpoint& checkpoint : superfluous_checkpoints(all, keep, last_finite))
    remove_directory(checkpoint.path);
}

}  // namespace sextant
