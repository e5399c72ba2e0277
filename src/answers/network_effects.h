// Effects of the network on a run whose layout is fixed: the network level of each axis, step times with other orders
// of the axes, and step times with a slower link on each level.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "answers/asked_run.h"

namespace sextant {

// The group along one axis of the mesh.
struct AxisOnNetwork {
  std::string axis;
  int64_t ranks = 0, in_node = 0;  // the second: together on the innermost level
  std::string level;               // that holds them all
  double ring_bytes_per_s = 0;     // of each rank, while all groups of the axis send
};

struct NetworkRow {
  std::string what;       // axes, the nearest first; or a level
  double rate_share = 1;  // of one link of that level
  double step_s = 0;
};

struct NetworkEffects {
  std::string model, machine, device, mesh, profile;
  int64_t devices = 0;
  double step_s = 0;
  std::vector<AxisOnNetwork> axes;     // of more than one rank, the nearest first
  std::vector<NetworkRow> placements;  // other orders of axes, the fastest first
  std::vector<NetworkRow> slow_links;  // by level that the run uses, and share
};

struct NetworkQuestion {
  const AskedRun& asked;
  const AskedPlace& place;
  std::vector<double> slow_links;  // shares of a link's rate, each above 0 and below 1
};

// UserError where the run has one rank, DoesNotFit where it does not fit the machine.
NetworkEffects network_effects(const NetworkQuestion& question);

std::string network_effects_text(const NetworkEffects& answer);
nlohmann::ordered_json network_effects_json(const NetworkEffects& answer);

}  // namespace sextant
