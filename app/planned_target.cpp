#include "app/planned_target.h"

#include "app/device.h"
#include "cost/machine_file.h"
#include "cost/software_profile_file.h"
#include "plan/machine_target.h"

namespace sextant {

CLI::Option* add_target_options(CLI::App& verb, TargetOptions& options) {
  CLI::Option* machine =
      verb.add_option("--machine", options.machine, "what it runs on: a name of machines/ or a TOML file");
  verb.add_option("--software", options.software,
                  "whose software runs it, a name of machines/software.toml [sextant's own]")
      ->needs(machine);
  return machine;
}

PlannedTarget planned_target(const TargetOptions& options, const ModelSpec& spec) {
  PlannedTarget place{
      .machine = {},
      .profile = options.software.empty() ? own_profile() : profile_named(load_profiles(), options.software)};
  if (!options.machine.empty()) place.machine = load_machine(options.machine);
  if (place.machine && spec.experts) place.machine = with_experts(std::move(*place.machine));
  return place;
}

Target target_at(const PlannedTarget& place, const RunConfig& run, int ranks) {
  if (!place.machine) return target_for(run, ranks);
  return machine_target({.run = run, .ranks = ranks, .machine = *place.machine, .profile = place.profile});
}

std::string model_name(const RunConfig& run, const ModelSpec& spec) {
  return run.model.preset.value_or(spec.architecture);
}

}  // namespace sextant
