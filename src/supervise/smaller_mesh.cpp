#include "supervise/smaller_mesh.h"

#include <fmt/format.h>

#include "base/error.h"
#include "config/load.h"
#include "config/mesh_axes.h"
#include "config/microbatches.h"
#include "run/programs.h"
#include "run/resolve_spec.h"

namespace sextant {

namespace {

MeshChoice choice_of(const RunConfig& run, std::string setting) {
  int64_t data_parallel = axis_of(&MeshSection::dp).size_in(run.mesh);
  int64_t microbatches = microbatches_per_rank(run, data_parallel);
  return {.ranks = ranks_of(run.mesh),
          .setting = std::move(setting),
          .text = fmt::format("{}, {} microbatch{} for each rank and step", sizes_text(run.mesh), microbatches,
                              microbatches == 1 ? "" : "es")};
}

}  // namespace

std::optional<MeshChoice> mesh_for(const RunConfig& run, int64_t most_ranks) {
  if (ranks_of(run.mesh) <= most_ranks) return choice_of(run, "");
  const MeshAxis& data = axis_of(&MeshSection::dp);
  int64_t full = data.size_in(run.mesh);
  for (int64_t size = full - 1; size >= 1; --size) {
    if (ranks_of(run.mesh) / full * size > most_ranks) continue;
    std::string setting = fmt::format("{}={}", data.key, size);
    try {
      RunConfig smaller = parse_config(config_toml(run), run.source, std::vector{setting});
      run_shape(smaller, resolve_spec(smaller));
      return choice_of(smaller, setting);
    } catch (const UserError&) {
      continue;  // ZeRO over more ranks than that, experts that need them
    }
  }
  return std::nullopt;
}

}  // namespace sextant
