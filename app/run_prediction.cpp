#include "app/run_prediction.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "app/device.h"
#include "base/error.h"
#include "base/files.h"
#include "base/printable.h"
#include "base/trace_rows.h"
#include "base/units.h"
#include "cost/machine_file.h"
#include "cost/software_profile_file.h"
#include "plan/machine_target.h"
#include "plan/predict.h"
#include "plan/run_plan.h"
#include "run/resolve_spec.h"
#include "train/op_times.h"
#ifdef SEXTANT_CUDA
#include "bench/save.h"
#include "exec/cuda/runtime/devices.h"
#endif

namespace sextant {

namespace {

using PlanJson = nlohmann::ordered_json;

// A run that is over sooner is not worth a measurement of the machine.
constexpr int64_t kStepsWorthAnOffer = 100;

bool runs_on_cuda(const RunConfig& run) {
  return (run.device == DeviceChoice::automatic ? device_of_auto() : run.device) == DeviceChoice::cuda;
}

// The measured file of this machine; without one, for a GPU, the known machine with that GPU.
std::optional<Machine> machine_here(const RunConfig& run) {
  DeviceKind kind = runs_on_cuda(run) ? DeviceKind::accelerator : DeviceKind::cpu;
  if (!find_machine_file(kThisMachine).empty())
    if (Machine machine = load_machine(kThisMachine); machine.device.kind == kind) return machine;
#ifdef SEXTANT_CUDA
  if (kind == DeviceKind::accelerator && !cuda_devices().devices.empty())
    return known_machine_with(cuda_devices().devices.front().name);
#endif
  return std::nullopt;
}

PlanJson ops_json(const SimResult& simulated) {
  PlanJson ops = PlanJson::array();
  for (size_t stage = 0; stage < simulated.ranks.size(); ++stage)
    for (const TraceRow& row : rows_by_op(simulated.trace, static_cast<int>(stage)))
      ops.push_back({stage, row.op, row.path, row.count, row.seconds});
  return ops;
}

struct WrittenPlan {
  double step_s = 0;
  double peak_flops_per_s = 0;  // of all devices of the run; 0: not known
  std::string machine;
};

// Nothing where the machine is not known.
std::optional<WrittenPlan> write_plan(const RunConfig& run, const std::filesystem::path& out) {
  std::optional<Machine> machine = machine_here(run);
  if (!machine) return std::nullopt;
  ModelSpec spec = resolve_spec(run);
  if (spec.experts) machine = with_experts(std::move(*machine));
  SoftwareProfile profile = own_profile();
  int ranks = run_shape(run, spec).mesh.world_size();
  LoweredRun lowered =
      lower_run(run, spec, machine_target({.run = run, .ranks = ranks, .machine = *machine, .profile = profile}));
  SimResult simulated;
  RunPlan plan = make_plan({.run = run,
                            .lowered = lowered,
                            .machine = &*machine,
                            .profile = &profile,
                            .simulation = {.trace = KeepTrace::yes}},
                           &simulated);
  PlanJson json = PlanJson::parse(plan_json(plan));
  json["ops"] = ops_json(simulated);
  write_file_atomically(out / kPlanFile, json.dump(-1, ' ', false, PlanJson::error_handler_t::replace) + "\n");
  return WrittenPlan{.step_s = plan.step ? plan.step->seconds : 0,
                     .peak_flops_per_s = peak_flops_per_s(*machine, plan.weights) * ranks,
                     .machine = machine->name};
}

}  // namespace

std::optional<double> predict_run(const RunConfig& run, const std::filesystem::path& out, Beginning beginning,
                                  Verbosity verbosity) {
  auto say = [&](const std::string& line) {
    if (verbosity != Verbosity::quiet) fmt::print("{}\n", printable(line));
  };
  try {
    std::optional<WrittenPlan> plan = write_plan(run, out);
    if (plan && plan->step_s > 0)
      say(fmt::format(
          "plan     {} a step, {} tokens/s on {} ({})", human_duration(plan->step_s),
          human_count(static_cast<int64_t>(static_cast<double>(run.batch.sequences * run.batch.seq) / plan->step_s)),
          plan->machine, (out / kPlanFile).string()));
    else if (!plan && beginning == Beginning::fresh && run.train.steps >= kStepsWorthAnOffer)
      say("plan     none: this machine was not measured; after `sextant bench machine --save here` runs are predicted");
    if (plan && plan->peak_flops_per_s > 0) return plan->peak_flops_per_s;
  } catch (const std::exception& error) {
    say(fmt::format("plan     none: {}", error.what()));
  }
  return std::nullopt;
}

}  // namespace sextant
