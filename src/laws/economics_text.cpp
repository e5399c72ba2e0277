#include <fmt/format.h>

#include <cmath>

#include "base/units.h"
#include "laws/economics.h"
#include "laws/quantity.h"
#include "laws/run_amounts.h"

namespace sextant {

namespace {

std::string thousands(double value) {
  return human_count(static_cast<int64_t>(std::llround(value)));
}

std::string device_time(double hours) {
  return hours < 1 ? human_days(hours / 24) + " of devices" : human_quantity(hours) + " device-hours";
}

std::string failures_line(const Economics& e) {
  std::string rate = fmt::format("one every {}", human_duration(e.mtbf_hours * 3600));
  std::string source = e.run.device_mtbf_hours > 0
                           ? fmt::format("{} h between failures of a device", thousands(e.run.device_mtbf_hours))
                           : "at the rate of Llama 3 405B: 419 in 54 days on 16,384 H100s, arXiv:2407.21783";
  std::string count = e.failures ? fmt::format("{:.3g} expected, ", *e.failures) : "";
  if (e.failures && *e.failures < 0.01) count = "fewer than 0.01 expected, ";
  return fmt::format("failures    {}{} ({})\n", count, rate, source);
}

std::string lost_line(const Economics& e) {
  if (!(e.goodput > 0) || !e.saves_between()) return "";
  return fmt::format(
      "lost        {:.2f} % saving, {:.2f} % done again after failures, {:.2f} % restarting; goodput {:.2f} %\n",
      100 * e.lost.checkpoints, 100 * e.lost.rework, 100 * e.lost.restarts, 100 * e.goodput);
}

std::string checkpoint_line(const Economics& e) {
  bool configured = e.run.checkpoint_every > 0;
  if (e.run.checkpoint_seconds == 0 && !configured)
    return "checkpoint  after every step, because a checkpoint costs no time\n";
  if (!e.saves_between())
    return fmt::format(
        "checkpoint  at the end only{}\n",
        configured ? ", as configured"
                   : fmt::format(": none is due before it (Daly 2006: every {})", human_duration(e.daly_seconds)));
  double seconds = static_cast<double>(e.checkpoint_steps) * e.run.step_seconds;
  return fmt::format("checkpoint  every {} step{}, {}; {} (Daly 2006: {}; Young 1974: {})\n",
                     human_count(e.checkpoint_steps), e.checkpoint_steps == 1 ? "" : "s", human_duration(seconds),
                     configured ? "what loses least" : "this loses least", human_duration(e.daly_seconds),
                     human_duration(e.young_seconds));
}

const char* interval_name(const Economics& e) {
  if (!e.saves_between()) return "at the end only";
  return e.run.checkpoint_every > 0 ? "as configured" : "Daly 2006, higher order";
}

}  // namespace

std::string economics_text(const Economics& e) {
  const RunEconomicsInput& run = e.run;
  std::string out =
      fmt::format("run         {} tokens: {} steps of {}, {} each\n", human_quantity(run.token_budget),
                  human_count(e.steps), human_quantity(run.tokens_per_step), human_days(run.step_seconds / 86400));
  out += fmt::format("devices     {} in {} node{}", human_count(run.devices), human_count(e.nodes),
                     e.nodes == 1 ? "" : "s");
  if (run.params > 0)
    out += fmt::format(", {:.1f} TFLOP/s each by 6·N per token", e.model_flops_per_device_second / 1e12);
  out += fmt::format("\ntime        {} of steps", human_days(e.days));
  if (!e.days_with_failures)
    out += "; with failures it does not end: they come faster than the run gets on\n";
  else
    out += fmt::format(", {} with failures and checkpoints; {}\n", human_days(*e.days_with_failures),
                       device_time(*e.device_hours));
  if (e.cost)
    out += fmt::format("cost        {} at ${:g} a device-hour\n", human_cost(*e.cost), run.price_per_device_hour);
  if (e.energy_mwh)
    out += fmt::format("energy      {} ({:g} W a device, PUE {:g})\n", human_energy(*e.energy_mwh), run.device_watts,
                       run.pue);
  return out + failures_line(e) + checkpoint_line(e) + lost_line(e);
}

std::string economics_json(const Economics& e) {
  auto number = [](const std::optional<double>& value) { return value ? fmt::format("{:.10g}", *value) : "null"; };
  return fmt::format(
      "{{\"steps\": {}, \"nodes\": {}, \"days\": {:.10g}, \"days_with_failures\": {}, \"device_hours\": {}, \"cost\": "
      "{}, "
      "\"energy_mwh\": {}, \"model_flops_per_device_second\": {}, \"mtbf_hours\": {:.10g}, \"failures\": {}, "
      "\"checkpoint\": {{\"interval\": \"{}\", \"every_steps\": {}, \"saves\": {:.0f}, \"daly_seconds\": {:.10g}, "
      "\"young_seconds\": {:.10g}}}, \"goodput\": {:.10g}, \"lost\": {{\"checkpoints\": {:.10g}, \"rework\": {:.10g}, "
      "\"restarts\": {:.10g}}}}}",
      e.steps, e.nodes, e.days, number(e.days_with_failures), number(e.device_hours), number(e.cost),
      number(e.energy_mwh), number(e.run.params > 0 ? std::optional(e.model_flops_per_device_second) : std::nullopt),
      e.mtbf_hours, number(e.failures), interval_name(e), e.checkpoint_steps, e.saves, e.daly_seconds, e.young_seconds,
      e.goodput, e.lost.checkpoints, e.lost.rework, e.lost.restarts);
}

}  // namespace sextant
