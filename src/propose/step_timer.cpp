#include "propose/step_timer.h"

#include "config/load.h"

namespace sextant {

namespace {

// A step that is estimated to take longer is not tried: measuring takes five.
constexpr double kLongestMeasured = 0.5;
// Of forward and backward, for each parameter and token.
constexpr double kFlops = 6;

struct Probe {
  const char* toml;
  double parameters;
};

// From small to larger: the rate of a small model is below that of a large one. Its own 512 rows of vocabulary count.
constexpr Probe kProbes[] = {
    {"[model]\narchitecture=\"llama\"\nlayers=2\nhidden=128\nheads=4\nvocab=512\ntied_head=true\n", 5.0e5},
    {"[model]\narchitecture=\"llama\"\nlayers=2\nhidden=512\nheads=8\nvocab=512\ntied_head=true\n", 6.6e6},
};

double flops_of(const RunConfig& run, double parameters) {
  return kFlops * parameters * static_cast<double>(run.batch.sequences * run.batch.seq);
}

RunConfig probe_run(const Probe& probe, const RunConfig& run) {
  RunConfig small = parse_config(probe.toml, "a model to measure the speed of this machine with");
  small.device = run.device;
  small.batch = {.sequences = 1, .microbatch = 1, .seq = run.batch.seq};
  small.model.set<&ModelSpec::max_seq>(run.batch.seq);
  return small;
}

}  // namespace

double StepTimer::seconds(const RunConfig& run, double parameters) {
  if (flops_per_s_ == 0)
    for (const Probe& probe : kProbes) {
      RunConfig small = probe_run(probe, run);
      double flops = flops_of(small, probe.parameters);
      if (flops_per_s_ > 0 && flops / flops_per_s_ > kLongestMeasured) break;
      flops_per_s_ = flops / measure_(small);
    }
  double flops = flops_of(run, parameters), estimated = flops / flops_per_s_;
  if (estimated > kLongestMeasured) return estimated;
  double seconds = measure_(run);
  flops_per_s_ = flops / seconds;
  return seconds;
}

}  // namespace sextant
