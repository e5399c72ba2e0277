// The pictures of a plan, ready to draw: what `plan` knows, in the plain form that `observe` draws.
#pragma once

#include "cost/machine.h"
#include "plan/predict.h"
#include "plan/run_plan.h"
#include "view/memory_svg.h"
#include "view/mesh_svg.h"

namespace sextant {

// One panel per pipeline stage, from the buffers' lifetimes; its dashed line is what the plan says will be allocated.
MemoryPicture memory_picture(const RunPlan& plan, const LoweredRun& lowered);

// One moment of it.
MemoryPoint memory_point(MemoryMoment moment);

// `machine` null: nobody knows what a node is.
MeshPicture mesh_picture(const RunPlan& plan, const LoweredRun& lowered, const Machine* machine);

// The simulated step; `trace` as simulate leaves it.
std::string step_timeline_svg(const RunPlan& plan, const Trace& trace);

}  // namespace sextant
