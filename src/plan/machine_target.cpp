#include "plan/machine_target.h"

#include "base/error.h"
#include "cost/planned_target.h"
#include "ops/fp8_recipe.h"
#include "run/run_target.h"

namespace sextant {

namespace {

// Products in fp8, and those in formats that nothing runs yet, are priced by the device's own peak.
void require_units(const RunConfig& run, const Machine& machine) {
  const std::string& device = machine.device.name;
  if (find_fp8_recipe(run.train.precision) && machine.peak("fp8") == 0)
    throw UserError({.place = run.place_of("train.precision"),
                     .got = fmt::format("{} on {}, which has no fp8 units", word_of(run.train.precision), device),
                     .expected = "\"bf16\" or \"auto\", or a machine with fp8 in [device.peak_tflops]"});
  const BlockFormat* format = find_block_format(run.train.precision);
  if (!format) return;
  for (std::string_view units : {format->units, BlockFormat::kScalingUnits})
    if (machine.peak(std::string(units)) == 0)
      throw UserError(
          {.place = run.place_of("train.precision"),
           .got = fmt::format("{} on {}, which has no units for it ({})", format->name(), device, format->text()),
           .expected = "\"bf16\" or \"auto\", or a machine with fp4 in [device.peak_tflops]"});
}

}  // namespace

Target machine_target(const MachineTargetRequest& r) {
  const Device& device = r.machine.device;
  if (device.kind == DeviceKind::accelerator) {
    require_units(r.run, r.machine);
    Target target = overlay(cuda_target_of(r.run), r.profile);
    for (const BlockFormat& format : block_formats()) target.priced_formats.push_back(format.name());
    return target;
  }
  // A device is the threads of one rank, and a node is as many ranks as were measured side by side.
  return cpu_target_of(r.run, r.ranks, static_cast<int>(device.units * r.machine.devices_per_node));
}

}  // namespace sextant
