// What watching costs a step: the processor time (user and system, this thread) of all that a run does for it by
// default, part by part: the step's clock, the heartbeat, the detectors, the line of metrics.jsonl. Processor time,
// because runs with and without differ by less than the noise of either. Usage: bench_watch_cost [milliseconds of
// processor time that a step takes]; with them it prints the share, and exits with 1 where it is half a percent or
// more.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <string_view>
#include <system_error>

#include "comm/rank_status.h"
#include "config/run_config.h"
#include "train/health/drift_watch.h"
#include "train/health/heartbeat.h"
#include "train/health/repeated_steps.h"
#include "train/health/spike_watch.h"
#include "train/health/step_clock.h"
#include "train/metrics.h"

namespace sextant {
namespace {

constexpr int64_t kWatchedSteps = 20'000;

double thread_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Microseconds of a step.
double cost_of(std::string_view part, const std::function<void(int64_t step)>& work) {
  double start = thread_seconds();
  for (int64_t step = 1; step <= kWatchedSteps; ++step) work(step);
  double microseconds = 1e6 * (thread_seconds() - start) / static_cast<double>(kWatchedSteps);
  fmt::print("{:<40} {:7.2f} us\n", part, microseconds);
  return microseconds;
}

StepMetrics step_metrics(int64_t step) {
  StepMetrics m{.step = step};
  double noise = 0.01 * static_cast<double>(step * 7919 % 13);
  m.values.set(number::loss, 3 + noise);
  m.values.set(number::grad_norm, 1 + noise);
  m.values.set(number::lr, 3e-4);
  m.values.set(number::tokens, step * 4096);
  m.values.set(number::tokens_per_s, 51'234.5 + noise);
  m.values.set(number::step_s, 0.02 + 0.1 * noise);
  m.values.set(number::own_s_by_rank, std::vector<double>{0.018, 0.0178123});
  m.values.set(number::message_s_by_rank, std::vector<double>{0.0011234, 0.0014567});
  m.values.set(number::input_s_by_rank, std::vector<double>{1.2e-5, 1.3e-5});
  m.values.set(number::processor_s, 0.0378);
  m.values.set(number::crowding, 1.0);
  return m;
}

int measure(double step_milliseconds) {
  namespace fs = std::filesystem;
  fs::path folder = fs::temp_directory_path() / fmt::format("sextant-watch-cost-{}", ::getpid());
  fs::create_directories(folder);
  double all = 0;
  {
    RankStatus status;
    StepClock clock(&status);
    Heartbeat heartbeat(folder, 0, status);
    MetricsFile metrics(folder / "metrics.jsonl", 0);
    DriftWatch drift(MessagesTimed::yes);
    SpikeSection settings;
    SpikeWatch spikes(settings);
    RepeatedSteps repeated(1);
    all += cost_of("the clock of the step", [&](int64_t) {
      clock.resume();
      clock.take();
      clock.pause();
    });
    all += cost_of("the heartbeat", [&](int64_t step) {
      status.begin_step(step);
      heartbeat.note_times(clock.last());
      heartbeat.beat();
    });
    all += cost_of("the line of metrics.jsonl", [&](int64_t step) { metrics.append(step_metrics(step)); });
    all += cost_of("drifts, of two ranks", [&](int64_t step) { drift.note(timed_step(step_metrics(step), 1)); });
    all += cost_of("spikes and repeated steps", [&](int64_t step) {
      StepMetrics m = step_metrics(step);
      spikes.policy_of(step);
      spikes.note(m);
      repeated.note(m);
    });
  }
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  fmt::print("{:<40} {:7.2f} us\n", "all of them", all);
  if (step_milliseconds <= 0) return 0;
  double share = all / (1e3 * step_milliseconds);
  fmt::print("of a step of {:g} ms: {:.3f} %\n", step_milliseconds, 100 * share);
  return share < 0.005 ? 0 : 1;
}

}  // namespace
}  // namespace sextant

int main(int argc, char** argv) {
  return sextant::measure(argc > 1 ? std::atof(argv[1]) : 0);
}
