#include "answers/planned_run.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "laws/quantity.h"
#include "plan/machine_target.h"

namespace sextant {

namespace {

constexpr size_t kKeptForAnswers = 5;  // of the layouts that a search finds

// Everything that a search refers to, which must live as long as it.
struct SearchParts {
  Machine machine;
  Target target;

  explicit SearchParts(const PlanQuestion& q)
      : machine(q.asked.spec.experts ? with_experts(q.place.machine) : q.place.machine),
        target(machine_target({.run = q.asked.run,
                               .ranks = static_cast<int>(q.devices),
                               .machine = machine,
                               .profile = q.place.profile})) {}

  SearchRequest request(const PlanQuestion& q) const {
    return {.run = q.asked.run,
            .spec = q.asked.spec,
            .machine = machine,
            .profile = q.place.profile,
            .devices = q.devices,
            .keep = kKeptForAnswers,
            .limits = q.place.limits,
            .target = &target,
            .token_budget = q.tokens,
            .intervals = q.place.intervals,
            .scope = SearchScope::fastest,
            .below_seconds = q.below_seconds};
  }
};

}  // namespace

std::optional<double> PlannedRun::cost_per_million() const {
  if (!layout.economics || !layout.economics->cost) return std::nullopt;
  return *layout.economics->cost / layout.economics->run.token_budget * 1e6;
}

std::optional<double> PlannedRun::days_at_worst() const {
  if (!layout.economics || !interval) return std::nullopt;
  RunEconomicsInput slow = layout.economics->run;
  slow.step_seconds = interval->high(slow.step_seconds);
  return economics_of(slow).days_with_failures;
}

bool as_fast(const PlannedRun& a, const PlannedRun& b) {
  if (a.interval && a.interval->equal(a.tokens_per_s(), b.tokens_per_s())) return true;
  if (b.interval && b.interval->equal(a.tokens_per_s(), b.tokens_per_s())) return true;
  return a.tokens_per_s() == b.tokens_per_s();
}

std::optional<PlannedRun> planned_run(const PlanQuestion& q) {
  SearchParts parts(q);
  SearchResult found = search_layouts(parts.request(q));
  if (found.best.empty()) return std::nullopt;
  PlannedRun out{.model = q.asked.name,
                 .machine = found.machine,
                 .device = found.device,
                 .profile = found.profile,
                 .parameters = q.asked.parameters,
                 .devices = found.devices,
                 .sequences = found.sequences,
                 .seq = found.seq,
                 .device_bytes = found.device_bytes,
                 .price_per_hour = parts.machine.price_per_hour,
                 .layout = found.best.front(),
                 .interval = found.interval};
  for (size_t i = 1; i < found.best.size(); ++i)
    if (found.best[i].equals_best) out.equals.push_back(found.best[i].overrides);
  return out;
}

std::optional<Candidate> smallest_of(const PlanQuestion& q) {
  SearchParts parts(q);
  return smallest_layout(parts.request(q));
}

nlohmann::ordered_json json_of(const PlannedRun& plan) {
  using Json = nlohmann::ordered_json;
  auto maybe = [](const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); };
  const Candidate& layout = plan.layout;
  Json json{{"model", plan.model},
            {"parameters", plan.parameters},
            {"machine", plan.machine},
            {"device", plan.device},
            {"software", plan.profile},
            {"devices", plan.devices},
            {"sequences", plan.sequences},
            {"seq", plan.seq},
            {"overrides", layout.overrides},
            {"step_s", layout.seconds},
            {"interval", nullptr},
            {"tokens_per_s", plan.tokens_per_s()},
            {"tokens_per_s_per_device", layout.tokens_per_s_per_device},
            {"mfu", layout.mfu},
            {"peak_bytes", layout.peak_bytes},
            {"device_bytes", plan.device_bytes},
            {"equal_layouts", plan.equals},
            {"price_per_device_hour", plan.price_per_hour > 0 ? Json(plan.price_per_hour) : Json(nullptr)},
            {"run", nullptr}};
  if (plan.interval)
    json["interval"] = {{"share", plan.interval->share},
                        {"low_s", plan.interval->low(layout.seconds)},
                        {"high_s", plan.interval->high(layout.seconds)}};
  if (const std::optional<Economics>& run = layout.economics)
    json["run"] = {{"tokens", run->run.token_budget},
                   {"days", maybe(run->days_with_failures)},
                   {"days_at_high", maybe(plan.days_at_worst())},
                   {"device_hours", maybe(run->device_hours)},
                   {"cost", maybe(run->cost)},
                   {"cost_per_million_tokens", maybe(plan.cost_per_million())}};
  return json;
}

std::string with_digits(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return fmt::format("{}", value);
  double unit = std::pow(10, std::floor(std::log10(std::abs(value))) - digits + 1);
  return fmt::format("{:.10g}", std::round(value / unit) * unit);
}

std::string short_seconds(double seconds) {
  return seconds < 1 ? with_digits(1e3 * seconds, 3) + " ms" : with_digits(seconds, 3) + " s";
}

std::string interval_text(const PlannedRun& plan) {
  if (!plan.interval) return "";
  double low = plan.interval->low(plan.layout.seconds), high = plan.interval->high(plan.layout.seconds);
  return high < 1 ? fmt::format("{} to {} ms", with_digits(1e3 * low, 2), with_digits(1e3 * high, 2))
                  : fmt::format("{} to {} s", with_digits(low, 2), with_digits(high, 2));
}

std::string text_of(const PlannedRun& plan) {
  const Candidate& layout = plan.layout;
  std::string text =
      fmt::format("layout      {}\n", layout.overrides) +
      fmt::format("step        {} for {} × {} tokens", short_seconds(layout.seconds), plan.sequences, plan.seq);
  if (plan.interval)
    text += fmt::format("; {:.0f} % of measurements lie in {}", 100 * plan.interval->share, interval_text(plan));
  text += fmt::format("\nspeed       {} tokens/s, {} on each device, {:.3g} % MFU; {}\n",
                      human_quantity(plan.tokens_per_s()), human_quantity(layout.tokens_per_s_per_device),
                      100 * layout.mfu, layout.why) +
          fmt::format("memory      {} of {} on the fullest device\n", human(Bytes{layout.peak_bytes}),
                      human(Bytes{static_cast<int64_t>(plan.device_bytes)}));
  if (const std::optional<Economics>& run = layout.economics) {
    text += fmt::format("run         {} tokens: ", human_quantity(run->run.token_budget));
    text += run->days_with_failures ? with_digits(*run->days_with_failures, 3) + " days with failures and checkpoints"
                                    : std::string("it does not end, as failures come faster than it gets on");
    if (std::optional<double> worst = plan.days_at_worst())
      text += fmt::format(" ({} at the end of the interval)", with_digits(*worst, 2));
    if (run->cost)
      text += fmt::format(", ${} at ${:g} a device-hour, ${:.3g} for a million tokens", human_quantity(*run->cost),
                          plan.price_per_hour, *plan.cost_per_million());
    text += '\n';
  }
  if (!plan.equals.empty()) {
    text += fmt::format("equal       within the interval {} more layout{}:\n", plan.equals.size(),
                        plan.equals.size() == 1 ? "" : "s");
    for (const std::string& overrides : plan.equals) text += fmt::format("            {}\n", overrides);
  }
  return text;
}

}  // namespace sextant
