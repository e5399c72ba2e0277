#include "laws/economics.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/units.h"

namespace sextant {

namespace {

constexpr double kHour = 3600, kDay = 86400;
constexpr double kMostSteps = 1e15;  // above any run, within int64

void require(bool holds, const char* what, double got, const char* expected) {
  if (!holds) throw UserError(Complaint{what, fmt::format("{:g}", got), expected, ""});
}

void check(const RunEconomicsInput& run) {
  auto positive = [](double value) { return std::isfinite(value) && value > 0; };
  auto not_negative = [](double value) { return std::isfinite(value) && value >= 0; };
  require(positive(run.step_seconds), "time of a step", run.step_seconds, "more than 0 seconds");
  require(positive(run.tokens_per_step), "tokens per step", run.tokens_per_step, "more than 0");
  require(positive(run.token_budget), "token budget", run.token_budget, "more than 0");
  require(run.token_budget / run.tokens_per_step < kMostSteps, "token budget", run.token_budget,
          "fewer than 1e15 steps");
  require(run.devices > 0, "devices", static_cast<double>(run.devices), "at least 1");
  require(run.devices_per_node > 0, "devices per node", static_cast<double>(run.devices_per_node), "at least 1");
  require(not_negative(run.device_watts), "watts per device", run.device_watts, "0 (unknown) or more");
  require(std::isfinite(run.pue) && run.pue >= 1, "PUE", run.pue,
          "1 or more, because the building draws at least what its machines draw");
  require(not_negative(run.price_per_device_hour), "price per device-hour", run.price_per_device_hour,
          "0 (unknown) or more");
  require(not_negative(run.device_mtbf_hours), "hours between failures of a device", run.device_mtbf_hours,
          "0 (unknown) or more");
  require(not_negative(run.checkpoint_seconds), "seconds per checkpoint", run.checkpoint_seconds, "0 or more");
  require(run.checkpoint_every >= 0, "steps between checkpoints", static_cast<double>(run.checkpoint_every),
          "0 (best) or more");
  require(not_negative(run.restart_seconds), "seconds per restart", run.restart_seconds, "0 or more");
  require(not_negative(run.params), "parameters", run.params, "0 (unknown) or more");
}

// Goodput and losses of one piece of work between two checkpoints; all pieces are alike.
void add_failures(Economics& e, double work_seconds) {
  double mtbf = e.mtbf_hours * kHour, save = e.saves_between() ? e.run.checkpoint_seconds : 0;
  double piece = work_seconds + save;
  double failures = std::expm1(piece / mtbf);                                    // until one piece is done
  double restarts = failures * mtbf * std::expm1(e.run.restart_seconds / mtbf);  // which may fail too
  double rework = failures * mtbf - piece;
  double expected = piece + rework + restarts;
  if (!(expected < 1e6 * work_seconds)) {
    e.goodput = 0;
    return;
  }
  e.goodput = work_seconds / expected;
  e.lost = {save / expected, rework / expected, restarts / expected};
}

void add_totals(Economics& e) {
  const RunEconomicsInput& run = e.run;
  if (!(e.goodput > 0)) return;
  double days = e.days / e.goodput, device_hours = days * 24 * static_cast<double>(run.devices);
  e.days_with_failures = days;
  e.device_hours = device_hours;
  e.failures = days * 24 / e.mtbf_hours;  // they do not stop while the run restarts
  if (run.price_per_device_hour > 0) e.cost = device_hours * run.price_per_device_hour;
  if (run.device_watts > 0) e.energy_mwh = device_hours * run.device_watts * run.pue / 1e6;
}

}  // namespace

double young_interval(double checkpoint_seconds, double mtbf_seconds) {
  return std::sqrt(2 * checkpoint_seconds * mtbf_seconds);
}

double daly_interval(double checkpoint_seconds, double mtbf_seconds) {
  double ratio = checkpoint_seconds / (2 * mtbf_seconds);
  if (ratio >= 1) return mtbf_seconds;
  return young_interval(checkpoint_seconds, mtbf_seconds) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - checkpoint_seconds;
}

Economics economics_of(const RunEconomicsInput& run) {
  check(run);
  Economics e{.run = run};
  e.steps = static_cast<int64_t>(std::ceil(run.token_budget / run.tokens_per_step));
  e.nodes = ceil_div(run.devices, run.devices_per_node);
  double work_seconds = static_cast<double>(e.steps) * run.step_seconds;
  e.days = work_seconds / kDay;
  e.model_flops_per_device_second =
      6 * run.params * run.tokens_per_step / (run.step_seconds * static_cast<double>(run.devices));

  double device_mtbf = run.device_mtbf_hours > 0 ? run.device_mtbf_hours : kLlama3DeviceMtbfHours;
  e.mtbf_hours = device_mtbf / static_cast<double>(run.devices);
  e.young_seconds = young_interval(run.checkpoint_seconds, e.mtbf_hours * kHour);
  e.daly_seconds = daly_interval(run.checkpoint_seconds, e.mtbf_hours * kHour);
  // Saving happens between steps: not more often than each, and once at the end in any case.
  double steps = static_cast<double>(e.steps), least = std::round(e.daly_seconds / run.step_seconds);
  double between = std::clamp(run.checkpoint_every > 0 ? static_cast<double>(run.checkpoint_every) : least, 1.0, steps);
  e.checkpoint_steps = static_cast<int64_t>(between);
  e.saves = std::ceil(steps / between);
  add_failures(e, between * run.step_seconds);
  add_totals(e);
  return e;
}

}  // namespace sextant
