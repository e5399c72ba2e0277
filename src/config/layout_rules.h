// Which layouts of a model and a batch on a mesh are possible. A config that is loaded and a search for layouts ask the
// same rules.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "config/run_config.h"
#include "models/spec.h"

namespace sextant {

class Complaints;

// A step's schedule is written out, action by action for every stage and microbatch: so many are far beyond any run,
// and still planned in seconds.
int64_t most_microbatches(int64_t stages);

// How [mesh], [pipeline], [batch] and train.recompute go together, and with the model.
void check_mesh(const RunConfig& run, const ModelSpec& spec, Complaints& complaints);
void check_recompute(const RunConfig& run, const ModelSpec& spec, Complaints& complaints);
void check_pipeline(const RunConfig& run, Complaints& complaints);
void check_batch(const RunConfig& run, const ModelSpec& spec, Complaints& complaints);

// Whether the model can be laid on [mesh], whatever the batch: heads, widths, experts, layers and positions are shared
// out.
bool is_mesh_possible(const RunConfig& run, const ModelSpec& spec);

// All of them: why the run's layout is impossible, with the keys that are at odds; empty where it can run.
std::vector<Complaint> layout_problems(const RunConfig& run, const ModelSpec& spec);

}  // namespace sextant
