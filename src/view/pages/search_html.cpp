#include "view/pages/search_html.h"

#include <fmt/format.h>

#include <cmath>

#include "base/units.h"
#include "laws/quantity.h"
#include "laws/run_amounts.h"
#include "view/page.h"

namespace sextant {

namespace {

std::string step_time(double seconds) {
  return seconds < 1 ? fmt::format("{:.2f} ms", 1e3 * seconds) : fmt::format("{:.3f} s", seconds);
}

std::string days_text(const Economics& run) {
  return run.days_with_failures ? human_days(*run.days_with_failures) : "it does not end";
}

std::string cost_text(const Economics& run) {
  return run.cost ? human_cost(*run.cost) : "not known";
}

void answer(Page& page, const SearchResult& result) {
  const Candidate& best = result.best.front();
  std::vector<PageFigure> figures{
      {step_time(best.seconds), "a step of the fastest layout that fits"},
      {human_count(std::llround(best.tokens_per_s_per_device)), "tokens/s on each device"},
      {fmt::format("{:.1f} %", 100 * best.mfu), "MFU, attention causal"},
      {human(Bytes{best.peak_bytes}),
       fmt::format("of {} on the fullest device; {}", human(Bytes{static_cast<int64_t>(result.device_bytes)}),
                   result.headroom.about)}};
  if (best.economics) {
    figures.push_back({days_text(*best.economics), fmt::format("for {} tokens, with failures and checkpoints",
                                                               human_quantity(best.economics->run.token_budget))});
    if (best.economics->cost) figures.push_back({cost_text(*best.economics), "for the devices"});
  }
  page.figures(figures);
}

PageTable layouts_table(const std::vector<Candidate>& layouts) {
  bool run = !layouts.empty() && layouts.front().economics.has_value();
  PageTable table{.heads = {{""}, {"a step"}, {"memory"}, {"MFU"}, {"tokens/s/device"}}, .rows = {}, .notes = 3};
  if (run) table.heads.push_back({"the run"}), table.heads.push_back({"cost"});
  for (const char* words : {"where the time goes", "what hurts", "behind the config"}) table.heads.push_back({words});
  for (const Candidate& c : layouts) {
    std::vector<std::string> row{fmt::format("{}", table.rows.size() + 1), step_time(c.seconds),
                                 human(Bytes{c.peak_bytes}) + (c.fit == MemoryFit::fits ? "" : ", may fit"),
                                 fmt::format("{:.1f} %", 100 * c.mfu),
                                 fmt::format("{:.0f}", c.tokens_per_s_per_device)};
    if (run) row.push_back(days_text(*c.economics)), row.push_back(cost_text(*c.economics));
    row.insert(row.end(), {c.why, table.rows.empty() ? "" : c.hurts, c.overrides});
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

std::string search_html(const SearchResult& result, const PageOrigin& origin) {
  Page page(fmt::format("Layouts of {} on {} × {}", result.model, human_count(result.devices), result.device));
  const SearchCounts& counts = result.counts;
  page.lead(fmt::format("{} sequences of {} tokens a step; machine {}, software {}.", human_count(result.sequences),
                        human_count(result.seq), result.machine, result.profile));
  answer(page, result);
  page.section("Fastest");
  page.table(layouts_table(result.best));
  page.paragraph("Behind the config, the keys of a row give its layout to sextant plan and sextant train.");
  page.section("Less memory for more time");
  page.table(layouts_table(result.pareto));
  page.section("What was tried");
  page.paragraph(fmt::format(
      "{} layouts: {} too large and {} too slow by their bounds, {} lowered whole and simulated ({} of them did not "
      "fit).",
      human_count(static_cast<int64_t>(counts.considered)), human_count(static_cast<int64_t>(counts.too_large)),
      human_count(static_cast<int64_t>(counts.too_slow)), human_count(static_cast<int64_t>(counts.priced)),
      human_count(static_cast<int64_t>(counts.did_not_fit))));
  page.made_by(origin);
  return std::move(page).finish();
}

}  // namespace sextant
