#include "bench/sizing.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/units.h"
#include "bench/step_bench.h"
#include "config/resolve.h"

namespace sextant {

namespace {

// One device, one microbatch, so many layers.
RunConfig single(const SizingRequest& request, int64_t layers) {
  RunConfig run = request.run;
  run.mesh = {};
  run.pipeline = {};
  run.model.set<&ModelSpec::vocab>(request.spec.vocab);
  run.model.set<&ModelSpec::layers>(layers);
  run.batch.sequences = run.batch.microbatch;
  run.train.eval_every = 0;
  return run;
}

void set_size(RunConfig& run, const std::string& name, int64_t value) {
  if (name == "hidden") run.model.set<&ModelSpec::hidden>(value);
  if (name == "heads") run.model.set<&ModelSpec::heads>(value);
  if (name == "ffn") run.model.set<&ModelSpec::ffn>(value);
  if (name == "vocab") run.model.set<&ModelSpec::vocab>(value);
  if (name == "seq") {
    run.batch.seq = value;
    run.model.set<&ModelSpec::max_seq>(std::max(run.model.given<&ModelSpec::max_seq>().value_or(0), value));
  }
  if (name == "batch") run.batch.microbatch = run.batch.sequences = value;
}

struct Timed {
  std::vector<double> seconds;
  double flops = 0;
};

Timed time_layers(const SizingRequest& request, int64_t layers, const std::string& name, int64_t value,
                  const Watch& watch) {
  RunConfig run = single(request, layers);
  set_size(run, name, value);
  ModelSpec spec = resolve_model(run);
  LoweredRun lowered = lower_run(run, spec, request.target);
  StepRequest steps{.run = run,
                    .spec = spec,
                    .make_executor = request.make_executor,
                    .threads = request.threads,
                    .at_least_s = request.seconds_per_size / 2,
                    .least_steps = 5,
                    .most_steps = 300};
  int64_t tokens = run.batch.sequences * run.batch.seq;
  return {time_steps(steps, lowered, watch).seconds,
          flops_per_token(lowered, run.batch).executed * static_cast<double>(tokens)};
}

}  // namespace

std::vector<int64_t> nearby_sizes(const std::string& name, const ModelSpec& spec, const RunConfig& run) {
  std::set<int64_t> sizes;
  auto multiples = [&](int64_t size, std::initializer_list<int64_t> of) {
    sizes.insert(size);
    for (int64_t each : of) sizes.insert({size / each * each, round_up(size, each)});
  };
  if (name == "hidden") multiples(spec.hidden, {spec.heads * 8, spec.heads * 16, spec.heads * 64});
  if (name == "ffn") multiples(spec.ffn, {8, 64, 128, 256});
  if (name == "vocab") multiples(spec.vocab, {8, 64, 128, 256});
  if (name == "seq") sizes.insert({run.batch.seq / 2, run.batch.seq, 2 * run.batch.seq});
  if (name == "batch")
    sizes.insert({run.batch.microbatch / 2, run.batch.microbatch, run.batch.microbatch + 1, 2 * run.batch.microbatch});
  if (name == "heads")
    for (int64_t heads = 1; heads <= spec.hidden; ++heads)
      if (spec.hidden % heads == 0 && heads % std::max<int64_t>(1, spec.kv_heads) == 0 && 2 * heads >= spec.heads &&
          heads <= 2 * spec.heads)
        sizes.insert(heads);
  std::vector<int64_t> positive;
  for (int64_t size : sizes)
    if (size > 0) positive.push_back(size);
  return positive;
}

std::vector<std::string> cliffs_of(const std::string& name, const std::vector<SizePoint>& points) {
  constexpr double kNear = 0.05, kWorth = 0.05, kAsGood = 0.98;
  std::vector<std::string> cliffs;
  for (const SizePoint& at : points) {
    double own = at.flops / at.seconds, best = own;
    auto near = [&](const SizePoint& other) {
      return std::abs(static_cast<double>(other.value - at.value)) <= kNear * static_cast<double>(at.value);
    };
    for (const SizePoint& other : points)
      if (near(other)) best = std::max(best, other.flops / other.seconds);
    if (!(best >= (1 + kWorth) * own)) continue;
    std::vector<SizePoint> better;  // not empty: the best is among them
    for (const SizePoint& other : points)
      if (near(other) && other.flops / other.seconds >= kAsGood * best) better.push_back(other);
    const SizePoint& nearest =
        *std::ranges::min_element(better, {}, [&](const SizePoint& other) { return std::abs(other.value - at.value); });
    cliffs.push_back(fmt::format("{} {}: {:.0f} % slower than {}, the nearest better size", name, at.value,
                                 100 * (nearest.flops / nearest.seconds / own - 1), nearest.value));
  }
  return cliffs;
}

void bench_sizing(const SizingRequest& request, BenchReport& report, const Watch& watch) {
  std::vector<VariedSize> sizes = request.sizes;
  size_t done = 0, all = 0;
  for (VariedSize& size : sizes) {
    if (size.values.empty()) size.values = nearby_sizes(size.name, request.spec, request.run);
    all += size.values.size();
  }
  for (const VariedSize& size : sizes) {
    std::vector<SizePoint> points;
    for (int64_t value : size.values) {
      if (watch.stop()) break;
      watch.say(fmt::format("{} {} ({} of {})", size.name, value, ++done, all));
      try {
        Timed one = time_layers(request, 1, size.name, value, watch),
              two = time_layers(request, 2, size.name, value, watch);
        double layer_flops = two.flops - one.flops, more = static_cast<double>(request.spec.layers - 1);
        double first = summary_of(one.seconds).median, layer = summary_of(two.seconds).median - first;
        if (layer <= 0) {
          report.findings.push_back(fmt::format(
              "{} {}: a step of two layers took no longer than one of a single layer; the machine is too busy to tell",
              size.name, value));
          continue;
        }
        BenchResult step{.kind = "sizing",
                         .name = size.name,
                         .shape = std::to_string(value),
                         .dtype = "step",
                         .size = {static_cast<double>(value)},
                         .samples = one.seconds,
                         .flops = one.flops + more * layer_flops};
        for (double& seconds : step.samples) seconds += more * layer;
        BenchResult single{.kind = "sizing",
                           .name = size.name,
                           .shape = std::to_string(value),
                           .dtype = "layer",
                           .size = step.size,
                           .samples = {},
                           .flops = layer_flops};
        for (double seconds : two.seconds) single.samples.push_back(std::max(0.0, seconds - first));
        points.push_back({value, step.flops, step.seconds().median});
        report.results.insert(report.results.end(), {step, single});
      } catch (const UserError& error) {
        report.findings.push_back(fmt::format("{} {} is not a valid model: {}", size.name, value, error.what()));
      }
    }
    for (std::string& cliff : cliffs_of(size.name, points)) report.findings.push_back(std::move(cliff));
  }
}

}  // namespace sextant
