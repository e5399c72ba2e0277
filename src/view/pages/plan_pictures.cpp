#include "view/pages/plan_pictures.h"

#include <fmt/format.h>

#include "plan/step_memory.h"
#include "view/sim_timeline_svg.h"

namespace sextant {

namespace {

constexpr size_t kMomentsDrawn = 320;  // of a rank's step

}  // namespace

MemoryPoint memory_point(MemoryMoment moment) {
  MemoryPoint point{.path = std::move(moment.path), .phase = std::string(name_of(moment.region))};
  auto set = [&](MemoryUse use, int64_t bytes) { point.bytes[static_cast<size_t>(use)] = bytes; };
  set(MemoryUse::weights, moment.parts.weights);
  set(MemoryUse::gradients, moment.parts.gradients);
  set(MemoryUse::optimizer, moment.parts.optimizer);
  set(MemoryUse::activations, moment.parts.activations);
  set(MemoryUse::communication, moment.parts.communication);
  set(MemoryUse::scratch, moment.parts.scratch);
  return point;
}

MemoryPicture memory_picture(const RunPlan& plan, const LoweredRun& lowered) {
  MemoryPicture picture;
  if (plan.device_bytes) picture.limit = static_cast<int64_t>(*plan.device_bytes);
  const auto& programs = lowered.programs.train;
  for (size_t i = 0; i < programs.size() && i < plan.classes.size(); ++i) {
    const RankClass& rank = plan.classes[i];
    MemoryPanel panel{.title = programs.size() > 1 ? fmt::format("stage {}", rank.stage) : "one rank",
                      .points = {},
                      .outside = rank.memory.overhead,
                      .allocated = rank.memory.total()};
    for (MemoryMoment& moment : step_moments(programs[i], kMomentsDrawn))
      panel.points.push_back(memory_point(std::move(moment)));
    picture.panels.push_back(std::move(panel));
  }
  return picture;
}

MeshPicture mesh_picture(const RunPlan& plan, const LoweredRun& lowered, const Machine* machine) {
  return {.mesh = lowered.shape.mesh, .devices_per_node = machine ? machine->devices_per_node : 0, .sent = plan.sent};
}

std::string step_timeline_svg(const RunPlan& plan, const Trace& trace) {
  std::string device = plan.device.empty() ? "a device" : plan.device;
  return sim_timeline_svg(trace, {.title = fmt::format("one step on {}, simulated", device),
                                  .row = plan.classes.size() > 1 ? "stage" : "rank"});
}

}  // namespace sextant
