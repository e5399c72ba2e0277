#include "sweep/sweep_comparison.h"

#include "watch/run_set.h"

namespace sextant {

std::vector<RunComparison> compare_with_best(const SweepResult& result) {
  std::vector<RunSet> sets;
  for (const SweptRun& run : result.runs) {
    std::error_code none;
    if (!std::filesystem::is_directory(run.out, none)) continue;
    RunSet set({run.out});
    set.read_all();
    bool has_steps = set.runs().size() == 1 && set.runs().front()->columns().rows() > 0;
    if (has_steps) sets.push_back(std::move(set));
  }
  std::vector<const WatchedRun*> runs;
  for (const RunSet& set : sets) runs.push_back(set.runs().front().get());
  return compare_with_first(runs);
}

std::string sweep_comparison_text(const std::vector<RunComparison>& comparisons) {
  constexpr size_t kInFull = 8;
  if (comparisons.size() <= kInFull) return comparison_text(comparisons);
  std::string text;
  for (const RunComparison& comparison : comparisons) text += comparison.sentence() + "\n";
  return text;
}

}  // namespace sextant
