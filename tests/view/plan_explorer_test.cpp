#include "view/pages/plan_explorer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "config/load.h"
#include "config/resolve.h"
#include "cost/machine_file.h"
#include "cost/planned_target.h"
#include "view/pages/plan_html.h"
#include "view/xml_check.h"

namespace sextant {
namespace {

using Json = nlohmann::json;

// A small run on four devices, and plans around it.
class Explored : public testing::Test {
 protected:
  static constexpr size_t kLayouts = 5;  // the config's, tp doubled, pp halved and doubled, recompute

  explicit Explored() : machine_(load_machine("h100-sxm")), profile_(own_profile()) {
    keys_ = {"model.preset=\"gpt2\"", "model.layers=4",     "model.hidden=64", "model.heads=4",
             "batch.seq=64",          "batch.sequences=16", "mesh.pp=2",       "mesh.dp=2"};
    run_ = load_config("", keys_);
    spec_ = resolve_model(run_);
  }

  PlanGrid explore(const std::vector<std::string>& vary, int64_t layouts = kNeighbouringLayouts) {
    entries_.assign(kMostGridPlans, "");
    return plan_grid({.config = "",
                      .overrides = keys_,
                      .run = run_,
                      .spec = spec_,
                      .machine = &machine_,
                      .profile = profile_,
                      .target = [&](const RunConfig&, int) { return planned_target(profile_); },
                      .token_budget = 3e9,
                      .vary = changes_of(vary, "--vary"),
                      .layouts = layouts,
                      .keep = [&](const GridPlan& p) { entries_[p.point] = PlanExplorer::entry_of(p); }});
  }

  // Output of `plan --json` for the config with these overrides appended.
  Json planned(const std::vector<std::string>& overrides) {
    std::vector<std::string> all = keys_;
    all.insert(all.end(), overrides.begin(), overrides.end());
    RunConfig run = load_config("", all);
    LoweredRun lowered = lower_run(run, resolve_model(run), planned_target(profile_));
    return Json::parse(plan_json(
        make_plan({.run = run, .lowered = lowered, .machine = &machine_, .profile = &profile_, .token_budget = 3e9})));
  }

  static Json data_of(const ExplorerHtml& html) {
    std::string opening = "id=\"plans\">";
    size_t begin = html.behind.find(opening) + opening.size();
    return Json::parse(html.behind.substr(begin, html.behind.find("</script>", begin) - begin));
  }

  Machine machine_;
  SoftwareProfile profile_;
  std::vector<std::string> keys_;
  RunConfig run_;
  ModelSpec spec_;
  std::vector<std::string> entries_;
};

TEST_F(Explored, EveryPlanIsThatOfItsCommand) {
  PlanGrid grid = explore({"devices=3,8", "batch.sequences=16", "batch.seq=128"});
  ASSERT_EQ(grid.axes.size(), 4u);
  EXPECT_EQ(grid.axes[0].values, (std::vector<std::string>{"3", "4", "8"})) << "the config's own is among them";
  ASSERT_EQ(grid.axes.back().values.size(), kLayouts);
  ASSERT_EQ(grid.points.size(), 3 * 1 * 2 * kLayouts);
  Json data = data_of(PlanExplorer(grid, entries_).html({"sextant plan", ""}));
  ASSERT_EQ(data["points"].size(), grid.points.size());
  EXPECT_EQ(data["points"][grid.chosen()]["overrides"], Json::array());
  size_t plans = 0, refused = 0;
  for (size_t i = 0; i < grid.points.size(); ++i) {
    const Json& point = data["points"][i];
    refused += point["why_not"].get<std::string>().empty() ? 0 : 1;
    EXPECT_EQ(point["why_not"].get<std::string>().empty(), point.contains("plan")) << i;
    if (!point.contains("plan")) continue;
    ++plans;
    if (i % 7 == 0 || i == grid.chosen()) {
      EXPECT_EQ(point["plan"], planned(point["overrides"])) << i;
    }
  }
  EXPECT_GE(plans, grid.points.size() / 2);
  // Three devices are no multiple of two stages.
  EXPECT_NE(grid.points[0].why_not.find("3 devices"), std::string::npos) << grid.points[0].why_not;
  EXPECT_GE(refused, grid.points.size() / 6);
}

// The figures of the page are read from the same plan, and the picture of the step has all of its compute.
TEST_F(Explored, ShowsTheFiguresOfThePlan) {
  PlanGrid grid = explore({"devices=4", "batch.sequences=16", "batch.seq=64"}, 0);
  ASSERT_EQ(grid.points.size(), 1u);
  Json point = data_of(PlanExplorer(grid, entries_).html({"sextant plan", ""}))["points"][0];
  const Json& shown = point["shown"];
  const Json& step = point["plan"]["step"];
  EXPECT_EQ(shown["step_table"]["rows"].back()[1], fmt::format("{:.1f} ms", 1e3 * step["seconds"].get<double>()));
  EXPECT_EQ(shown["figures"][3][0], fmt::format("{:.1f} %", 100 * step["mfu"].get<double>()));
  EXPECT_EQ(shown["memory"]["allocated"], point["plan"]["memory"]["peak_bytes"]);
  EXPECT_EQ(shown["memory"]["limit"], point["plan"]["memory"]["device_bytes"]);
  const Json& timeline = shown["timeline"];
  double busy = 0;
  for (const Json& row : timeline["rows"])
    if (row["compute"] == true && row["rank"] == 0)
      for (const Json& block : row["blocks"])
        for (size_t i = 2; i < block.size(); i += 2)
          if (timeline["kinds"][block[i].get<size_t>()][0].get<std::string>().find("messages") == std::string::npos)
            busy += block[1].get<double>() * block[i + 1].get<double>() / 100;
  double seconds = busy / 4000 * timeline["end_s"].get<double>();
  EXPECT_NEAR(seconds, step["compute_s"].get<double>() + step["update_s"].get<double>(), 0.05 * seconds);
}

TEST_F(Explored, StandsInAPageThatNeedsNothingElse) {
  PlanGrid grid = explore({"devices=4", "batch.sequences=16", "batch.seq=64"});
  RunConfig run = load_config("", keys_);
  LoweredRun lowered = lower_run(run, spec_, planned_target(profile_));
  RunPlan plan = make_plan({.run = run, .lowered = lowered, .machine = &machine_, .profile = &profile_});
  std::string html = plan_html({.plan = plan,
                                .lowered = lowered,
                                .machine = &machine_,
                                .profile = &profile_,
                                .explorer = PlanExplorer(grid, entries_).html({"sextant plan " + kHostile, ""}),
                                .origin = {.model = "gpt2",
                                           .config = "a.toml",
                                           .command = "sextant plan a.toml",
                                           .version = "1.2.3",
                                           .date = "2026-11-18"}});
  EXPECT_EQ(why_not_well_formed(html), "");
  EXPECT_EQ(count_of(html, "<script"), 2u);
  for (const char* part : {"chosen-figures", "chosen-why", "chosen-step", "chosen-memory", "chosen-tables",
                           "chosen-command", "as-in-config", "axis-0", "axis-3"})
    EXPECT_EQ(count_of(html, fmt::format(" id=\"{}\"", part)), 1u) << part;
  for (const char* source : {" src=", "href=", "@import", "url(http", "fetch("}) EXPECT_EQ(count_of(html, source), 0u);
  for (const char* said : {"Model gpt2, config a.toml; sextant 1.2.3, 2026-11-18.", ">sextant plan a.toml<"})
    EXPECT_EQ(count_of(html, said), 1u) << said;
}

TEST_F(Explored, SaysWhatCannotBeVaried) {
  for (const char* text : {"machine=h200", "mesh.dp=4", "devices=0", "devices=2.5", "batch.seq=x2", "batch.sqe=4"})
    EXPECT_THROW(explore({text}), UserError) << text;
  std::string many = "devices=1";
  for (int i = 2; i < 2000; ++i) many += fmt::format(",{}", i);
  EXPECT_THROW(explore({many}), UserError);
}

}  // namespace
}  // namespace sextant
