#include "view/pages/plan_html.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "config/load.h"
#include "config/resolve.h"
#include "cost/machine_file.h"
#include "cost/planned_target.h"
#include "laws/quantity.h"
#include "view/pages/plan_pictures.h"
#include "view/xml_check.h"

namespace sextant {
namespace {

// A small run, planned with and without a machine.
struct Planned {
  explicit Planned(std::vector<std::string> mesh, const Machine* with) : machine(with), profile(own_profile()) {
    std::vector<std::string> keys = {"model.preset=\"gpt2\"", "model.layers=4", "model.hidden=64",
                                     "model.heads=4",         "batch.seq=128",  "batch.sequences=16"};
    keys.insert(keys.end(), mesh.begin(), mesh.end());
    RunConfig run = load_config("", keys);
    lowered = std::make_unique<LoweredRun>(lower_run(run, resolve_model(run), planned_target(profile)));
    plan = make_plan({.run = run,
                      .lowered = *lowered,
                      .machine = machine,
                      .profile = &profile,
                      .token_budget = 3e9,
                      .simulation = {.trace = KeepTrace::yes}},
                     machine ? &result : nullptr);
  }
  std::string html(const std::string& name = "small") const {
    return plan_html({.plan = plan,
                      .lowered = *lowered,
                      .machine = machine,
                      .profile = &profile,
                      .trace = machine ? &result.trace : nullptr,
                      .origin = {.model = name, .config = "", .command = "", .version = "", .date = ""}});
  }

  const Machine* machine;
  SoftwareProfile profile;
  std::unique_ptr<LoweredRun> lowered;
  SimResult result;
  RunPlan plan;
};

class PlanHtml : public testing::Test {
 protected:
  static void SetUpTestSuite() { h100() = load_machine("h100-sxm"); }
  static Machine& h100() {
    static Machine machine;
    return machine;
  }
};

void expect_shown(const std::string& html, const std::string& what) {
  EXPECT_NE(html.find(">" + what + "<"), std::string::npos) << what;
}

TEST_F(PlanHtml, ShowsTheFiguresOfThePlan) {
  Planned run({"mesh.pp=2", "mesh.dp=4", "mesh.tp=2"}, &h100());
  const RunPlan& p = run.plan;
  std::string html = run.html();
  EXPECT_EQ(why_not_well_formed(html), "");
  expect_shown(html, "it fits");
  expect_shown(html, human_count(std::llround(p.step->tokens_per_s_per_device * 16)));
  expect_shown(html, human_duration(86400 * p.economics->days_with_failures.value()));
  expect_shown(html, "$" + human_quantity(p.economics->cost.value()));
  expect_shown(html, fmt::format("{:.1f} %", 100 * p.step->mfu));
  expect_shown(html, fmt::format("{:.1f} ms", 1e3 * p.step->compute_s));
  expect_shown(html, fmt::format("{:.1f} ms", 1e3 * p.step->bubble_s));
  expect_shown(html, human_count(p.parameters));
  for (const ParameterCount& part : p.by_part) expect_shown(html, human_count(part.each * part.times));
  ASSERT_EQ(p.classes.size(), 2u);
  for (const RankClass& c : p.classes)
    for (int64_t bytes : {c.memory.weights, c.memory.optimizer, c.memory.activations, c.memory.total()})
      expect_shown(html, human(Bytes{bytes}));
  ASSERT_FALSE(p.sent.empty());
  for (const auto& [axes, bytes] : p.sent) expect_shown(html, human_count(bytes));
  EXPECT_NE(html.find("machines/h100-sxm.toml"), std::string::npos);
  for (const auto& [table, source] : h100().sources) expect_shown(html, table);
}

// Figures of the machine in their units, and the efficiencies that were used beside those of the tables.
TEST_F(PlanHtml, TellsTheMachinesFigures) {
  Machine machine = h100();
  machine.device.peaks = {{"bf16", 123e12}};
  machine.device.memory_bytes_per_s = 4.5e12;
  machine.levels.front().link = {250e9, 7.5e-6};
  machine.tables.product = 0.7375;
  machine.fitted = machine.tables;
  machine.fitted->product = 0.6125;
  std::string html = Planned({"mesh.dp=4"}, &machine).html();
  expect_shown(html, "123 TFLOP/s");
  expect_shown(html, "4.5 TB/s");
  EXPECT_NE(html.find("250 GB/s each way for a device, 7.5 µs a hop"), std::string::npos);
  expect_shown(html, "0.6125");
  expect_shown(html, "0.7375");
}

// The shares of a step add up to all of it.
TEST_F(PlanHtml, TheSplitOfAStepIsWhole) {
  Planned run({"mesh.pp=2", "mesh.dp=4", "mesh.tp=2"}, &h100());
  std::string html = run.html();
  size_t begin = html.find("of the stage that is idle least"), end = html.find("a step (simulated)");
  ASSERT_LT(begin, end);
  double shares = 0;
  for (size_t at = html.find(" %</td>", begin); at < end; at = html.find(" %</td>", at + 1))
    shares += std::stod(html.substr(html.rfind('>', at) + 1));
  EXPECT_NEAR(shares, 100, 0.5);
}

TEST_F(PlanHtml, HasAllPicturesAndAsksForNothing) {
  Planned run({"mesh.pp=2", "mesh.dp=4", "mesh.tp=2"}, &h100());
  std::string html = run.html();
  EXPECT_EQ(count_of(html, "<svg"), 1u + 2 + 3);  // the step, two stages, three axes
  EXPECT_EQ(count_of(html, "id=\"waiting\""), 1u);
  EXPECT_EQ(count_of(html, "<script"), 0u);
  EXPECT_EQ(count_of(html, "src="), 0u);
  EXPECT_EQ(count_of(html, "href="), 0u);
  EXPECT_EQ(count_of(html, "http"), count_of(html, "xmlns=\"http"));
  EXPECT_LT(html.size(), 1'000'000u);
}

TEST_F(PlanHtml, OneRankWithoutAMachine) {
  Planned run({}, nullptr);
  std::string html = run.html();
  EXPECT_EQ(why_not_well_formed(html), "");
  expect_shown(html, human(Bytes{run.plan.peak_bytes}));
  expect_shown(html, "one device");
  EXPECT_EQ(count_of(html, "tokens/s"), 0u);
  EXPECT_EQ(count_of(html, "What this assumes"), 0u);
}

TEST_F(PlanHtml, SaysWhatDoesNotFit) {
  Machine small = h100();
  small.device.memory_bytes = 2e6;
  std::string html = Planned({}, &small).html();
  expect_shown(html, "it does not fit");
  EXPECT_EQ(why_not_well_formed(html), "");
  EXPECT_GT(count_of(html, "class=\"alarm\" x="), 0u);
}

TEST_F(PlanHtml, HostileWordsAreWords) {
  Machine machine = h100();
  machine.name = machine.about = machine.device.name = machine.date = kHostile;
  machine.sources[kHostile] = kHostile;
  machine.levels[0].name = kHostile;
  Planned run({"mesh.dp=2"}, &machine);
  run.profile.name = run.profile.about = run.profile.source = kHostile;
  run.plan.architecture = run.plan.mesh = run.plan.device = kHostile;
  run.plan.classes[0].peak_at = run.plan.by_part[0].part = kHostile;
  run.plan.sent[kHostile] = 1, run.plan.step->exposed_comm_s[kHostile] = 1;
  for (Event& event : run.result.trace) event.path = kHostile;
  std::string html = run.html(kHostile);
  EXPECT_EQ(why_not_well_formed(html), "");
  EXPECT_EQ(count_of(html, "<script"), 0u);
}

// The picture is drawn from lifetimes, the plan from the arena: of microbatches one after the other the fullest moment
// holds the same, and gaps are all that differ. A pipeline's arena has room that is not all used at one time.
TEST_F(PlanHtml, TheMemoryPictureAgreesWithThePlan) {
  for (bool pipeline : {false, true}) {
    Planned run({pipeline ? "mesh.pp=2" : "mesh.pp=1"}, &h100());
    MemoryPicture picture = memory_picture(run.plan, *run.lowered);
    ASSERT_EQ(picture.panels.size(), pipeline ? 2u : 1u);
    for (size_t i = 0; i < picture.panels.size(); ++i) {
      const RankClass& c = run.plan.classes[i];
      const MemoryPoint* peak = &picture.panels[i].points.front();
      for (const MemoryPoint& point : picture.panels[i].points)
        if (point.total() > peak->total()) peak = &point;
      int64_t activations = peak->bytes[static_cast<size_t>(MemoryUse::activations)];
      EXPECT_EQ(peak->path, c.peak_at);
      if (!pipeline) {
        EXPECT_EQ(activations, c.memory.activations);
      }
      EXPECT_LE(activations, c.memory.activations);
      EXPECT_EQ(peak->bytes[static_cast<size_t>(MemoryUse::weights)], c.memory.weights);
      EXPECT_LE(peak->total() + c.memory.overhead, picture.panels[i].allocated);
      EXPECT_GE(peak->total() + c.memory.overhead, picture.panels[i].allocated * 99 / 100);
      EXPECT_EQ(picture.panels[i].allocated, c.memory.total());
    }
  }
}

// Every event of the simulated step tells its phase, and messages their axes.
TEST_F(PlanHtml, TheTraceTellsPhasesAndAxes) {
  Planned run({"mesh.pp=2", "mesh.dp=2", "mesh.tp=2"}, &h100());
  std::map<std::string, int> phases, axes;
  for (const Event& event : run.result.trace) ++phases[event.phase], ++axes[event.axes];
  EXPECT_EQ(phases.size(), 3u);
  for (const char* phase : {"forward", "backward", "update"}) EXPECT_GT(phases[phase], 0) << phase;
  for (const char* axis : {"", "tp", "dp", "pp"}) EXPECT_GT(axes[axis], 0) << axis;
}

}  // namespace
}  // namespace sextant
