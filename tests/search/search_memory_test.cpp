// Memory that a search accepts as fitting: the headroom that it leaves, and the estimated memory of other software.
#include "search/search_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "config/load.h"
#include "config/resolve.h"
#include "cost/machine_file.h"
#include "cost/planned_target.h"
#include "cost/software_profile_file.h"
#include "plan/run_plan.h"
#include "search/search_bound.h"
#include "search/search_price.h"

namespace sextant {
namespace {

class SearchedMemory : public testing::Test {
 protected:
  SearchedMemory() { machine_.context_bytes = 1e7, machine_.device.memory_bytes = 1.2e8; }

  SearchRequest request(std::optional<double> headroom, const SoftwareProfile& profile) const {
    return {.run = run_,
            .spec = spec_,
            .machine = machine_,
            .profile = profile,
            .devices = 2,
            .limits = LayoutLimits({"zero=0,1", "schedule=1f1b", "recompute=none,full"}, "--only"),
            .intervals = &intervals_,
            .headroom = headroom};
  }

  const RunConfig run_ = parse_config(
      "[model]\narchitecture = \"llama\"\nlayers = 2\nhidden = 256\nheads = 4\nvocab = 2048\n[batch]\nsequences = 8\n"
      "seq = 256\n[train]\neval_every = 0\n",
      "run.toml");
  const ModelSpec spec_ = resolve_model(run_);
  Machine machine_ = load_machine("h100-sxm");
  const SoftwareProfile own_ = own_profile(), megatron_ = profile_named(load_profiles(), "megatron-2021");
  const IntervalModel intervals_ = load_interval_model();
};

// On a device that the largest layout just fits, with the mean of the smallest and the largest left to be used.
TEST_F(SearchedMemory, FindsTheBestOfAllThatLeaveIt) {
  for (const SoftwareProfile* profile : {&own_, &megatron_}) {
    machine_.device.memory_bytes = 8e10;
    SearchRequest roomy = request(0, *profile);
    std::vector<RunConfig> all;
    for (const LayoutChoice& choice : layouts_of({run_, spec_, machine_, 2, Breadth::usual, &roomy.limits}))
      all.push_back(with_choice(run_, choice));
    std::vector<Candidate> ranked = rank_layouts(all, roomy);
    auto [least, most] = std::ranges::minmax(ranked, {}, &Candidate::peak_bytes);
    auto largest = static_cast<double>(most.peak_bytes),
         limit = 0.5 * (static_cast<double>(least.peak_bytes) + largest);
    machine_.device.memory_bytes = largest;
    SearchResult found = search_layouts(request(1 - limit / largest, *profile));
    EXPECT_EQ(found.headroom.from, HeadroomFrom::option);
    std::erase_if(ranked, [&](const Candidate& c) { return static_cast<double>(c.peak_bytes) > limit; });
    ASSERT_EQ(found.best.size(), std::min<size_t>(10, ranked.size()));
    for (size_t i = 0; i < found.best.size(); ++i)
      EXPECT_DOUBLE_EQ(found.best[i].seconds, ranked[i].seconds) << overrides_text(ranked[i].choice);
    for (const Candidate& c : found.pareto) EXPECT_LE(static_cast<double>(c.peak_bytes), limit) << c.overrides;
  }
}

// Of a layout that is found, time and memory are what a plan of it says.
TEST_F(SearchedMemory, IsThatOfThePlan) {
  SearchResult found = search_layouts(request(std::nullopt, megatron_));
  ASSERT_FALSE(found.best.empty());
  const Candidate& best = found.best.front();
  LoweredRun lowered = lower_run(best.config, spec_, planned_target(megatron_), Checks::none);
  RunPlan plan = make_plan(
      {.run = best.config, .lowered = lowered, .machine = &machine_, .profile = &megatron_, .intervals = &intervals_});
  EXPECT_EQ(plan.peak_bytes, best.peak_bytes);
  EXPECT_EQ(plan.device_fit(), best.fit);
  nlohmann::json json = nlohmann::json::parse(search_json(found));
  EXPECT_EQ(json["headroom"]["from"], "published runs");
  EXPECT_EQ(json["best"][0]["fit"], name_of(best.fit));
  EXPECT_TRUE(json.contains("memory_interval"));
}

// With fewer bytes for gradients and optimizer state than ours, and with more of everything.
TEST_F(SearchedMemory, BoundsAreBelowTheEstimate) {
  SoftwareProfile narrow = megatron_, wide = megatron_;
  narrow.gradient_bytes = 2, narrow.optimizer_bytes = 4;
  wide.gradient_bytes = 8, wide.optimizer_bytes = 20;
  wide.attention = AttentionKernel::unfused, wide.dropout = true, wide.keeps_activation_outputs = true;
  wide.keeps_gathered = true, wide.loss_in_f32 = true, wide.holds_last_logits = true, wide.buffer_bytes = 3e7;
  for (const SoftwareProfile* profile : {&narrow, &wide}) {
    LayoutBounds bounds({run_, spec_, machine_, *profile});
    std::vector<LayoutChoice> choices = layouts_of({run_, spec_, machine_, 2});
    for (size_t i = 0; i < choices.size(); i += choices.size() / 8 + 1) {
      Candidate price = price_layout(with_choice(run_, choices[i]), {spec_, machine_, *profile});
      for (Closeness close : {Closeness::coarse, Closeness::sent, Closeness::tight})
        EXPECT_LE(bounds.bound(choices[i], close).bytes, static_cast<double>(price.peak_bytes))
            << overrides_text(choices[i]);
    }
  }
}

TEST_F(SearchedMemory, SaysWhatIsLeftFreeWhereNothingFits) {
  try {
    SearchRequest asked = request(0.9, own_);
    asked.scope = SearchScope::fastest;
    search_layouts(asked);
    FAIL() << "it fits";
  } catch (const DoesNotFit& error) {
    EXPECT_NE(std::string(error.what()).find("90 % of the memory is left free (--headroom)"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace sextant
