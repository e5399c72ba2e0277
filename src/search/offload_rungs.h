// Ways to offload that a search tries where no layout fits with `[offload]` as the run has it: rung by rung, the one
// that costs a step least first.
//
//   1. Optimizer state and the low bits of master weights on the host, saved activations there, or both. State is
//      copied once a step. Activations are copied in every microbatch, beside compute, and may save that much of it
//      which train.recompute would do again; whether they gain anything is seen by their price.
//   2. The weights of blocks there too: each goes up twice in every microbatch.
//   3. and 4. The same with optimizer state on NVMe, which is slower than the host's memory many times over. Only where
//      it was the host that had no room.
//
// A key that the config gives stays as it is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "search/search.h"

namespace sextant {

// In place of `offload.path`, which only the user knows.
inline constexpr std::string_view kPathToName = "DIRECTORY";

struct OffloadRung {
  std::string about;            // "nothing fits: once more with …"
  std::vector<RunConfig> runs;  // the run with each of the rung's ways to offload; never empty
  bool on_nvme = false;
};

// Nothing for machines whose host is not known and for other software, which is not known to do the same.
std::vector<OffloadRung> offload_rungs(const SearchRequest& request);

}  // namespace sextant
