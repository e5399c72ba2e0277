// The layouts a search looks at: every sensible way to lay a run's model and batch on a number of devices. Enters: the
// run, its model, the machine. Leaves: the choices, each of which config/layout_rules.h calls possible; or, when the
// batch fits no mesh, what batch would.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/mesh_axes.h"
#include "config/run_config.h"
#include "cost/machine.h"
#include "models/spec.h"

namespace sextant {

// The keys that a search decides. Everything else stays as the run has it.
struct LayoutChoice {
  MeshSection mesh;  // the sizes of its axes, ZeRO and sequence parallelism
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
  int64_t chunks = 1;
  int64_t microbatch = 1;
  RecomputeMode recompute = RecomputeMode::none;
  bool operator==(const LayoutChoice&) const = default;

  int64_t stages() const { return mesh.pp * chunks; }
  int64_t devices() const { return ranks_of(mesh); }
  // Ranks that share one copy of what ZeRO shards.
  int64_t shards() const { return (mesh.zero_ranks > 0 ? mesh.zero_ranks : mesh.dp) * mesh.cp; }
};

LayoutChoice choice_of(const RunConfig& run);
RunConfig with_choice(const RunConfig& run, const LayoutChoice& choice);
std::string overrides_text(const LayoutChoice& choice);  // as typed behind the config: "mesh.dp=16 mesh.tp=8 …"

// usual: what people run. wide: also context parallelism for short sequences and ZeRO-3 along a pipeline, which are
// tried when nothing usual fits.
enum class Breadth : uint8_t { usual, wide };

class LayoutLimits;

struct SpaceRequest {
  const RunConfig& run;
  const ModelSpec& spec;
  const Machine& machine;
  int64_t devices = 1;
  Breadth breadth = Breadth::usual;
  const LayoutLimits* limits = nullptr;  // null: everything sensible is tried
};

std::vector<LayoutChoice> layouts_of(const SpaceRequest& request);

// The batches (global sequences) next to the run's, below and above, that some mesh of these devices can share equally;
// 0: none.
struct NearBatches {
  int64_t below = 0, above = 0;
};
NearBatches near_batches(const SpaceRequest& request);

}  // namespace sextant
