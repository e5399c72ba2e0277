#include "view/pages/plan_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "answers/planned_run.h"
#include "base/units.h"
#include "cost/price.h"
#include "laws/quantity.h"
#include "laws/run_amounts.h"

namespace sextant {

std::string milliseconds(double seconds) {
  return fmt::format("{:.1f} ms", 1e3 * seconds);
}

std::string percent_text(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string counted(int64_t n, std::string_view what) {
  return fmt::format("{} {}{}", human_count(n), what, n == 1 ? "" : "s");
}

namespace {

std::string bytes_text(int64_t n) {
  return human(Bytes{n});
}

std::string step_time(double seconds) {
  return seconds < 1 ? milliseconds(seconds) : fmt::format("{:.3f} s", seconds);
}

std::string interval_words(const StepTime& step) {
  if (!step.interval) return "";
  double low = step.interval->low(step.seconds), high = step.interval->high(step.seconds);
  bool long_step = high >= 1;
  return fmt::format("; {:.0f} % of measurements lie in {} to {} {}", 100 * step.interval->share,
                     with_digits(long_step ? low : 1e3 * low, 2), with_digits(long_step ? high : 1e3 * high, 2),
                     long_step ? "s" : "ms");
}

}  // namespace

std::vector<PageFigure> plan_figures(const RunPlan& p) {
  std::vector<PageFigure> figures;
  if (p.device_bytes)
    figures.push_back(
        {p.fits_host() && p.fits_nvme() ? fmt::format("it {}", name_of(p.device_fit())) : "it does not fit",
         fmt::format("{} of {} on the fullest device", bytes_text(p.peak_bytes),
                     bytes_text(static_cast<int64_t>(*p.device_bytes))),
         p.fits() ? Mood::good : Mood::bad});
  else
    figures.push_back({bytes_text(p.peak_bytes), "memory of the fullest rank"});
  if (p.step) {
    const StepTime& s = *p.step;
    figures.push_back({human_count(std::llround(s.tokens_per_s_per_device * static_cast<double>(p.ranks))),
                       p.ranks == 1 ? std::string("tokens/s")
                                    : fmt::format("tokens/s on {} devices ({:.0f} on each)", human_count(p.ranks),
                                                  s.tokens_per_s_per_device)});
    figures.push_back({step_time(s.seconds),
                       fmt::format("a step of {} tokens{}", human_count(p.tokens_per_step), interval_words(s))});
    figures.push_back({percent_text(s.mfu),
                       fmt::format("MFU, attention causal; {:.1f} TFLOP/s on each device", s.tflops_per_device)});
  }
  if (p.economics) {
    const Economics& e = *p.economics;
    if (e.days_with_failures)
      figures.push_back({human_days(*e.days_with_failures), fmt::format("for {} tokens, with failures and checkpoints",
                                                                        human_quantity(e.run.token_budget))});
    else
      figures.push_back({"it does not end", "failures come faster than the run gets on", Mood::bad});
    if (e.cost)
      figures.push_back({human_cost(*e.cost), fmt::format("at ${:g} a device-hour", e.run.price_per_device_hour)});
    if (e.energy_mwh)
      figures.push_back(
          {human_energy(*e.energy_mwh), fmt::format("at {:g} W a device, PUE {:g}", e.run.device_watts, e.run.pue)});
  }
  return figures;
}

PageTable step_table(const RunPlan& plan) {
  const StepTime& s = *plan.step;
  PageTable table{
      .heads = {{plan.classes.size() > 1 ? "of the stage that is idle least" : "of a rank"}, {"time"}, {"share"}},
      .rows = {},
      .total_rows = 1};
  double named = 0;
  auto add = [&](const std::string& name, double seconds) {
    named += seconds;
    if (seconds >= 5e-7) table.rows.push_back({name, milliseconds(seconds), percent_text(seconds / s.seconds)});
  };
  add("compute", s.compute_s);
  for (const auto& [axes, seconds] : s.exposed_comm_s) add(not_hidden_text(axes), seconds);
  add("waiting for other stages (bubble)", s.bubble_s);
  add("waiting for the host", s.host_s);
  add("update", s.update_s);
  add("the slowest device, beyond the mean", s.seconds - named);
  table.rows.push_back({"a step (simulated)", milliseconds(s.seconds), percent_text(1)});
  return table;
}

const RankClass& fullest_class(const RunPlan& plan) {
  return *std::ranges::max_element(plan.classes, {}, [](const RankClass& c) { return c.memory.total(); });
}

PageTable fullest_table(const RunPlan& plan) {
  const RankClass& fullest = fullest_class(plan);
  const MemoryParts& m = fullest.memory;
  PageTable table{.heads = {{plan.classes.size() > 1 ? fmt::format("a rank of stage {}", fullest.stage) : "a rank"},
                            {"memory"},
                            {"share"}},
                  .rows = {},
                  .total_rows = 1};
  auto add = [&](const std::string& name, int64_t n) {
    if (n > 0)
      table.rows.push_back(
          {name, bytes_text(n), percent_text(static_cast<double>(n) / static_cast<double>(m.total()))});
  };
  add(fmt::format("weights ({})", name_of(plan.weights)), m.weights);
  add("gradients", m.gradients);
  add("optimizer", m.optimizer);
  add("activations", m.activations);
  add("messages", m.communication);
  add("scratch, gaps", m.scratch);
  add("driver, libraries", m.overhead);
  add("in all", m.total());
  return table;
}

}  // namespace sextant
