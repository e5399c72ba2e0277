#include "view/pages/what_if_html.h"

#include <fmt/format.h>

#include "base/units.h"
#include "laws/quantity.h"
#include "laws/run_amounts.h"
#include "view/bars_svg.h"
#include "view/page.h"

namespace sextant {

namespace {

std::string speed_bars(const WhatIf& answer) {
  std::vector<Bar> bars;
  for (const WhatIfRow& row : answer.rows) {
    Bar& bar = bars.emplace_back();
    bar.name = row.change, bar.text = "no plan";
    if (!row.plan) continue;
    const PlannedRun& plan = *row.plan;
    bar.value = plan.tokens_per_s();
    bar.text = human_quantity(plan.tokens_per_s());
    // Steps that take longer train on fewer tokens.
    if (plan.interval) bar.low = *bar.value / plan.interval->high(1), bar.high = *bar.value / plan.interval->low(1);
  }
  return bars_svg(bars, "tokens/s of all devices; the line is the 80 % interval");
}

std::string cost_bars(const WhatIf& answer) {
  std::vector<Bar> bars;
  for (const WhatIfRow& row : answer.rows) {
    Bar& bar = bars.emplace_back();
    bar.name = row.change, bar.text = row.plan ? "price not known" : "no plan";
    if (row.plan) bar.value = row.plan->cost_per_million();
    if (bar.value) bar.text = "$" + with_digits(*bar.value, 3);
  }
  return bars_svg(bars, "dollars for a million tokens");
}

PageTable table_of(const WhatIf& answer) {
  PageTable table{.heads = {{"change"},
                            {"step"},
                            {"80 % interval"},
                            {"tokens/s"},
                            {"against the first"},
                            {"MFU"},
                            {"memory"},
                            {"the run"},
                            {"cost"},
                            {"$ for 1M tokens"},
                            {""}},
                  .rows = {},
                  .notes = 1};
  auto digits = [](const std::optional<double>& value) { return value ? with_digits(*value, 3) : std::string("–"); };
  for (const WhatIfRow& row : answer.rows) {
    if (!row.plan) {
      table.rows.push_back({row.change, "–", "–", "–", "–", "–", "–", "–", "–", "–", row.why_not});
      continue;
    }
    const PlannedRun& plan = *row.plan;
    const std::optional<Economics>& run = plan.layout.economics;
    std::string against =
        as_fast(plan, *answer.rows.front().plan) ? "equal" : fmt::format("× {:.2f}", *speed_ratio(answer, row));
    table.rows.push_back({row.change, short_seconds(plan.layout.seconds), interval_text(plan),
                          human_quantity(plan.tokens_per_s()), &row == &answer.rows.front() ? "" : against,
                          fmt::format("{:.3g} %", 100 * plan.layout.mfu), human(Bytes{plan.layout.peak_bytes}),
                          run && run->days_with_failures ? human_days(*run->days_with_failures) : "–",
                          run && run->cost ? human_cost(*run->cost) : "–", digits(plan.cost_per_million()),
                          fmt::format("behind the config: {}{}", plan.layout.overrides,
                                      row.remark.empty() ? "" : fmt::format(" ({})", row.remark))});
  }
  return table;
}

}  // namespace

std::string what_if_html(const WhatIfPage& asked) {
  const WhatIf& answer = asked.answer;
  const PlannedRun& first = *answer.rows.front().plan;
  Page page(fmt::format("{} on {} × {}: what if", first.model, human_count(first.devices), first.device));
  page.lead(fmt::format("{} tokens; {} sequences of {} tokens a step; machine {}, software {}.",
                        human_quantity(answer.tokens), human_count(first.sequences), human_count(first.seq),
                        first.machine, first.profile));
  page.section("Speed and cost");
  page.pictures({speed_bars(answer), cost_bars(answer)}, "");
  page.section("Every row is a plan");
  page.table(table_of(answer));
  page.paragraph(
      "The layout of each row was searched anew. Equal: the difference is smaller than predictions are known.");
  page.made_by(asked.origin);
  return std::move(page).finish();
}

}  // namespace sextant
