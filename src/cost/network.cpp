#include "cost/network.h"

namespace sextant {

Machine with_network_of(const SoftwareProfile& profile, Machine machine) {
  if (machine.levels.size() < 2) return machine;
  Link& far = machine.levels.back().link;
  if (profile.far_bytes_per_s_per_node)
    far.bytes_per_s = *profile.far_bytes_per_s_per_node / static_cast<double>(machine.devices_per_node);
  far.reached = profile.far_is_reached;
  far.alone_s = profile.far_latency_s;
  return machine;
}

}  // namespace sextant
