#include "sweep/halving.h"

#include <algorithm>

namespace sextant {

std::vector<Rung> rungs_of(size_t runs, int64_t steps, int64_t keep_one_in, int64_t earliest) {
  auto one_in = static_cast<size_t>(keep_one_in);
  auto kept = [&](size_t of) { return (of + one_in - 1) / one_in; };
  std::vector<Rung> rungs{{steps, runs}};
  if (keep_one_in <= 1) return rungs;
  for (size_t left = runs; left > 1 && rungs.back().until / keep_one_in >= earliest; left = kept(left))
    rungs.push_back({rungs.back().until / keep_one_in, 0});
  std::ranges::reverse(rungs);
  for (size_t left = runs; Rung & rung : rungs) {
    rung.runs = left;
    left = kept(left);
  }
  return rungs;
}

}  // namespace sextant
