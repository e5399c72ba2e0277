// A mesh for fewer ranks than the config asks for: fewer data-parallel ranks. batch.sequences is the batch of all
// ranks, so each of them accumulates over more microbatches, and what is trained stays the same but for rounding.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/run_config.h"

namespace sextant {

struct MeshChoice {
  int64_t ranks = 1;
  std::string setting;  // "mesh.dp=2"; empty: the config's own mesh
  std::string text;     // "dp 2 × tp 1 × pp 1 × cp 1, 4 microbatches for each rank and step"
};

// The config's mesh where there is room for it; else the largest divisor of its data-parallel ranks with which the
// whole config passes every check and the ranks have room. Nothing when there is none.
std::optional<MeshChoice> mesh_for(const RunConfig& run, int64_t most_ranks);

}  // namespace sextant
