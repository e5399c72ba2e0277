// Which rank keeps the second copy of a rank's local checkpoints.
#pragma once

#include <cstdint>
#include <vector>

namespace sextant {

struct RankPlace {
  uint64_t host = 0;    // the same number: the same host
  uint64_t layout = 0;  // state_layout: the same number, the same state
};

// The rank that keeps a copy for each rank; -1 where none does. `jump` 0: the rank at the same place of the next host,
// and none where a replica lives on another host anyway, or there is one host only.
std::vector<int> copy_holders(const std::vector<RankPlace>& ranks, int64_t jump);

}  // namespace sextant
