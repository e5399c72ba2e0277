// Successive halving: all runs go a short way, the best of them a longer one, and so on to the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sextant {

struct Rung {
  int64_t until;  // step
  size_t runs;    // that go so far
  bool operator==(const Rung&) const = default;
};

// One rung of all runs to the last step without halving (keep_one_in = 1). With it, each rung goes `keep_one_in` times
// as far as the one before, with one in `keep_one_in` of its runs, rounded up; there are as many as leave one run for
// the last, but none ends before step `earliest`.
std::vector<Rung> rungs_of(size_t runs, int64_t steps, int64_t keep_one_in, int64_t earliest);

}  // namespace sextant
