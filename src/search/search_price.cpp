#include "search/search_price.h"

#include <fmt/format.h>

#include <algorithm>

#include "cost/planned_target.h"
#include "cost/price.h"
#include "models/model_flops.h"
#include "plan/foreign_memory.h"
#include "plan/predict.h"
#include "plan/run_plan.h"
#include "run/fit.h"
#include "run/run_target.h"

namespace sextant {

namespace {

struct NamedPart {
  std::string name;
  double seconds = 0;
};

std::vector<NamedPart> named(const StepParts& parts) {
  std::vector<NamedPart> all{{"compute", parts.compute},
                             {"update", parts.update},
                             {"idle in the pipeline", parts.bubble},
                             {"waiting for the host", parts.host}};
  auto name = [](const std::string& axes) -> std::string {
    if (axes == kHostLink) return "waiting for the host link";
    return axes == kNvme ? "waiting for NVMe" : fmt::format("waiting for messages along {}", axes);
  };
  for (const auto& [axes, seconds] : parts.exposed) all.push_back({name(axes), seconds});
  return all;
}

double peak_flops(const Machine& machine, const LoweredRun& run) {
  DType weights = DType::f32;
  for (const Value& value : run.programs.train.front().values)
    if (value.kind == ValueKind::parameter && value.dtype != DType::f32) weights = value.dtype;
  return peak_flops_per_s(machine, weights);
}

// Of the fullest rank, as make_plan has it.
int64_t peak_of(const LoweredRun& lowered, const RunConfig& run, const PriceRequest& request) {
  if (memory_basis(&request.machine, &request.profile, run, request.spec.experts.has_value()) != MemoryBasis::estimate)
    return largest_arena(lowered.programs).n + static_cast<int64_t>(request.machine.context_bytes);
  int64_t most = 0;
  for (const Program& program : lowered.programs.train)
    most = std::max(most, parts_of(foreign_memory(program, run, request.profile, request.machine)).total());
  return most;
}

}  // namespace

Target target_of(const RunConfig& config, const PriceRequest& request) {
  return request.target ? *request.target : planned_target(request.profile, determinism_of(config));
}

RunConfig without_evaluation(RunConfig run) {
  run.train.eval_every = 0;
  return run;
}

Candidate price_layout(const RunConfig& config, const PriceRequest& request) {
  RunConfig run = without_evaluation(config);
  LoweredRun lowered = lower_run(run, request.spec, target_of(run, request), Checks::none);
  SimResult result =
      simulate_run(lowered, {request.machine, request.machine.efficiency(), request.profile, request.imbalance.ratio});
  const RankTime& rank = result.ranks[static_cast<size_t>(result.slowest)];
  Candidate out{.choice = choice_of(config), .config = config, .seconds = result.seconds};
  out.dominated = dominated_by(result);
  out.parts = {.compute = rank.compute,
               .update = rank.update,
               .bubble = rank.bubble,
               .host = rank.host,
               .exposed = rank.exposed};
  out.peak_bytes = peak_of(lowered, run, request);
  out.host_bytes = largest_arena(lowered.programs, MemorySpace::host).n;
  out.nvme_bytes = largest_arena(lowered.programs, MemorySpace::nvme).n;
  out.fits_device =
      static_cast<double>(out.peak_bytes) <= request.limit_bytes.value_or(request.machine.device.memory_bytes);
  const int64_t devices = out.choice.devices();
  out.lacking_bytes = std::max(0.0, static_cast<double>(out.host_bytes) - request.machine.host_bytes_of(devices)) +
                      std::max(0.0, static_cast<double>(out.nvme_bytes) - request.machine.nvme_bytes_of(devices));
  out.fits = out.fits_device && out.lacking_bytes == 0;
  int64_t tokens = run.batch.sequences * run.batch.seq;
  out.tokens_per_s_per_device = static_cast<double>(tokens) / static_cast<double>(devices) / out.seconds;
  double peak = peak_flops(request.machine, lowered);
  if (peak > 0)
    out.mfu = out.tokens_per_s_per_device * model_flops_per_token(lowered.shape.spec, run.batch.seq).causal / peak;
  out.why = why_of(out);
  return out;
}

void settle(Candidate& candidate, const PriceRequest& request, double token_budget) {
  LoweredRun lowered = lower_run(candidate.config, request.spec, target_of(candidate.config, request), Checks::none);
  RunPlan plan = make_plan({.run = candidate.config,
                            .lowered = lowered,
                            .machine = &request.machine,
                            .profile = &request.profile,
                            .token_budget = token_budget,
                            .imbalance = request.imbalance});
  candidate.peak_bytes = plan.peak_bytes;
  candidate.fits_device =
      static_cast<double>(plan.peak_bytes) <= request.limit_bytes.value_or(request.machine.device.memory_bytes);
  candidate.fits = plan.fits_host() && plan.fits_nvme() && candidate.fits_device;
  if (token_budget > 0) candidate.economics = plan.economics;
}

void verify_layout(const Candidate& candidate, const PriceRequest& request) {
  RunConfig run = without_evaluation(candidate.config);
  lower_run(run, request.spec, target_of(run, request), Checks::end);
}

std::string why_of(const Candidate& candidate) {
  std::vector<NamedPart> parts = named(candidate.parts);
  double total = 0;
  for (const NamedPart& part : parts) total += part.seconds;
  std::stable_sort(parts.begin(), parts.end(),
                   [](const NamedPart& a, const NamedPart& b) { return a.seconds > b.seconds; });
  std::string text;
  for (const NamedPart& part : parts)
    if (part.seconds > 0.005 * total)
      text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", part.name, 100 * part.seconds / total);
  return text;
}

std::string hurts_of(const Candidate& candidate, const Candidate& best) {
  std::vector<NamedPart> mine = named(candidate.parts), others = named(best.parts);
  NamedPart worst;
  for (const NamedPart& part : mine) {
    auto same =
        std::find_if(others.begin(), others.end(), [&](const NamedPart& other) { return other.name == part.name; });
    double more = part.seconds - (same == others.end() ? 0 : same->seconds);
    if (more > worst.seconds) worst = {part.name, more};
  }
  if (worst.seconds < 1e-4 * best.seconds) return "nothing significant";
  std::string text = fmt::format("{}: {:.3g} s more than the best", worst.name, worst.seconds);
  if (worst.name != "compute") return text;
  if (candidate.choice.recompute != best.choice.recompute)
    return text + fmt::format(" (recompute {})", word_of(candidate.choice.recompute));
  if (candidate.choice.microbatch < best.choice.microbatch) return text + " (smaller GEMMs)";
  if (candidate.choice.mesh.tp > best.choice.mesh.tp) return text + " (narrower GEMMs)";
  return text;
}

}  // namespace sextant
