#include "plan/machine_target.h"

#include "cost/planned_target.h"
#include "run/run_target.h"

namespace sextant {

Target machine_target(const MachineTargetRequest& r) {
  const Device& device = r.machine.device;
  if (device.kind == DeviceKind::accelerator) return overlay(cuda_target_of(r.run), r.profile);
  // A device is the threads of one rank, and a node is as many ranks as were measured side by side.
  return cpu_target_of(r.run, r.ranks, static_cast<int>(device.units * r.machine.devices_per_node));
}

}  // namespace sextant
