// How much of a step's time is the host's: the same config trained as `sextant train` does it (data, feeds, metrics),
// and its CUDA graphs launched back to back with nothing else.
//
//   bench_cuda_step CONFIG [key=value ...]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "ckpt/model_weights.h"
#include "config/load.h"
#include "exec/cuda/runtime/cuda_executor.h"
#include "run/programs.h"
#include "run/resolve_spec.h"
#include "train/data/dataset.h"
#include "train/trainer.h"

namespace sextant {
namespace {

constexpr int kSteps = 200, kWarmup = 20;
constexpr double kMost = 1.05;  // of the graphs alone; above it this program fails

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<long>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

// Steps as the training loop runs them: one is issued while another is under way.
double seconds_of_training(Trainer& trainer) {
  std::vector<double> times;
  for (int step = 1; step <= kSteps; ++step) {
    trainer.begin_step(step, step);
    if (trainer.steps_under_way() > trainer.steps_ahead()) times.push_back(trainer.finish_step()[number::step_s]);
  }
  while (trainer.steps_under_way() > 0) trainer.finish_step();
  return median({times.begin() + kWarmup, times.end()});
}

double seconds_of_graphs(Bound& bound) {
  auto wait = [&] { bound.collect(bound.fetch(bound.program().at("grad_norm"))); };
  wait();
  double start = now_s();
  for (int step = 0; step < kSteps; ++step)
    for_each_unit(bound.program().schedule, [&](std::span<const Action> unit) { bound.run(unit); });
  wait();
  return (now_s() - start) / kSteps;
}

// Whether the host's part is small enough.
bool run(const RunConfig& config) {
  ModelSpec spec = resolve_spec(config);
  RunShape shape = run_shape(config, spec);
  std::unique_ptr<Executor> executor = make_cuda_executor({});
  RunPrograms programs = build_programs(config, shape, executor->target());
  ThreadTeam team(0);
  Dataset dataset = open_dataset(config, spec, team, [](std::string_view) {});
  HostGroup group;
  Trainer trainer({config, programs, dataset, *executor, group});
  initialize_weights(trainer.bound(), 1);
  double training = seconds_of_training(trainer), graphs = seconds_of_graphs(trainer.bound());
  fmt::print("training {:.3f} ms a step, graphs back to back {:.3f} ms: {:.3f}x\n", 1e3 * training, 1e3 * graphs,
             training / graphs);
  return training <= kMost * graphs;
}

}  // namespace
}  // namespace sextant

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: bench_cuda_step CONFIG [key=value ...]\n");
    return 2;
  }
  try {
    std::vector<std::string> overrides(argv + 2, argv + argc);
    return sextant::run(sextant::load_config(argv[1], overrides)) ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
