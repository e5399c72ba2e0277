// `sextant plan-serving`: what generating text with a model takes, in place of training it.
#include <fmt/format.h>

#include <algorithm>

#include "app/common_options.h"
#include "app/given_options.h"
#include "app/planned_target.h"
#include "app/verb.h"
#include "config/load.h"
#include "plan/serving.h"
#include "run/resolve_spec.h"

namespace sextant {

namespace {

struct PlanServingArguments {
  std::string config;
  std::vector<std::string> overrides;
  bool json = false;
  TargetOptions target;
  int64_t prompt = 0, context = 0;  // positions; 0: not given
};

void add_plan_serving_options(CLI::App& verb, PlanServingArguments& a) {
  add_config(verb, a.config, a.overrides);
  verb.add_flag("--json", a.json, "print JSON");
  add_target_options(verb, a.target)->required();
  verb.add_option("--prompt", a.prompt, "positions of a prompt [1024, or half the context]")
      ->check(CLI::Range(int64_t{1}, kMaxPositions));
  verb.add_option("--context", a.context, "positions kept for each sequence [4096, or what the model can see]")
      ->check(CLI::Range(int64_t{1}, kMaxPositions));
}

ExitCode run_plan_serving(const PlanServingArguments& a, VerbContext& verb_context) {
  require_values(*verb_context.verb);
  RunConfig run = load_config(a.config, a.overrides);
  ModelSpec spec = resolve_spec(run);
  PlannedTarget place = planned_target(a.target, spec);
  int64_t context = a.context > 0 ? a.context : std::min<int64_t>(spec.max_seq, 4096);
  Serving serving = plan_serving({.spec = spec,
                                  .machine = *place.machine,
                                  .profile = place.profile,
                                  .tp = run.mesh.tp,
                                  .prompt = a.prompt > 0 ? a.prompt : std::min<int64_t>(1024, context / 2),
                                  .context = context});
  fmt::print("{}{}", a.json ? serving_json(serving) : serving_text(serving), a.json ? "\n" : "");
  return serving.fits() ? ExitCode::finished : ExitCode::does_not_fit;
}

constexpr ValueFormat kPlanServingValues[] = {{"POSITIONS", "positions", "--prompt"}};

}  // namespace

const VerbDef plan_serving_verb{
    .words = "plan-serving",
    .summary = "Caches, sequences and time per token of serving",
    .details = "",
    .examples = "sextant plan-serving configs/demo.toml --machine h200 --prompt 64 --context 128",
    .values = kPlanServingValues,
    .declare = declare_verb<add_plan_serving_options, run_plan_serving>,
};

}  // namespace sextant
