// Searches of runs that keep something outside the device: bounds against whole Programs, and the rungs that are
// climbed where nothing fits.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "base/rng.h"
#include "config/load.h"
#include "config/resolve.h"
#include "cost/planned_target.h"
#include "plan/run_plan.h"
#include "search/offload_rungs.h"
#include "search/search_bound.h"
#include "search/search_price.h"

namespace sextant {
namespace {

std::string config_text(int64_t layers, const std::string& more, bool tied = false) {
  return fmt::format(
      "[model]\narchitecture = \"llama\"\nlayers = {}\nhidden = 256\nheads = 8\nffn = 768\nvocab = 2048\n"
      "max_seq = 512\ntied_head = {}\n[train]\neval_every = 0\n{}",
      layers, tied, more);
}

// Slow enough that small models keep it busy, with a host that is slow against it where its link is.
Machine offloading_machine(double link = 1e10) {
  Machine machine;
  machine.name = "small", machine.device.name = "small";
  machine.device.units = 8, machine.device.clock_hz = 1e9;
  machine.device.peaks = {{"bf16", 2e12}, {"fp32", 2e11}};
  machine.device.memory_bytes = 8e9, machine.device.memory_bytes_per_s = 1e11;
  machine.devices_per_node = 2;
  machine.levels = {{.name = "node", .devices = 2, .link = {2e10, 2e-6}},
                    {.name = "cluster", .devices = 0, .link = {4e9, 5e-6}}};
  machine.attention["cudnn"] = {0.5, 0.5, 0.4, 0.4};
  machine.context_bytes = 1e6;
  machine.host = {.link_bytes_per_s = link,
                  .memory_bytes_per_s = 10 * link,
                  .memory_bytes = 1e11,
                  .nvme_bytes_per_s = 5e9,
                  .nvme_bytes = 1e12};
  return machine;
}

// The offloaded state, the number of devices, and the bandwidth of the link.
struct OffloadCase {
  std::string name, offload;
  int64_t layers, devices;
  double link;
  bool tied = false, experts = false;
};

class EveryOffloadedLayout : public testing::TestWithParam<OffloadCase> {
 protected:
  const OffloadCase at_ = GetParam();
  const RunConfig run_ = parse_config(
      config_text(at_.layers, fmt::format("[batch]\nsequences = 8\nseq = 256\n[offload]\n{}\n", at_.offload), at_.tied),
      "run.toml");
  const ModelSpec spec_ = [this] {
    ModelSpec spec = resolve_model(run_);
    if (at_.experts) {
      spec.architecture = "mixtral";
      spec.experts = ExpertsSpec{.count = 4, .per_token = 2, .ffn = 384, .normalise = true};
    }
    return spec;
  }();
  const Machine machine_ = offloading_machine(at_.link);
  const SoftwareProfile profile_ = own_profile();
};

constexpr uint64_t kLayoutsOfAWay = 16;  // drawn at random; hundreds were tried once, by hand

TEST_P(EveryOffloadedLayout, HasBoundsBelowItsPrice) {
  LayoutBounds bounds({run_, spec_, machine_, profile_});
  const std::vector<LayoutChoice> choices = layouts_of({run_, spec_, machine_, at_.devices});
  Random random(7, "layouts to try", static_cast<uint64_t>(at_.layers));
  int priced = 0;
  for (uint64_t i = 0; i < kLayoutsOfAWay; ++i) {
    const LayoutChoice& choice = choices[static_cast<size_t>(random.uniform(i) * static_cast<double>(choices.size()))];
    Candidate price;
    try {
      price = price_layout(with_choice(run_, choice), {spec_, machine_, profile_});
    } catch (const UserError&) {
      continue;  // no stage has blocks enough
    }
    ++priced;
    for (Closeness close : {Closeness::coarse, Closeness::sent, Closeness::tight, Closeness::walked}) {
      const LeastCost least = bounds.bound(choice, close);
      const std::string which = fmt::format("{} bound {}", overrides_text(choice), static_cast<int>(close));
      EXPECT_LE(least.seconds, price.seconds) << which;
      EXPECT_LE(least.bytes, static_cast<double>(price.peak_bytes)) << which;
      EXPECT_LE(least.host_bytes, static_cast<double>(price.host_bytes)) << which;
      EXPECT_LE(least.nvme_bytes, static_cast<double>(price.nvme_bytes)) << which;
    }
    const LeastCost close = bounds.bound(choice, Closeness::walked);
    EXPECT_GT(close.seconds, 0.35 * price.seconds) << overrides_text(choice);
    EXPECT_GT(close.bytes, 0.4 * static_cast<double>(price.peak_bytes)) << overrides_text(choice);
    // Beside a file the host has what a few steps of the update read, of which the bound knows nothing.
    if (price.nvme_bytes == 0) {
      EXPECT_GT(close.host_bytes, 0.4 * static_cast<double>(price.host_bytes)) << overrides_text(choice);
    }
    EXPECT_GE(close.nvme_bytes, 0.9 * static_cast<double>(price.nvme_bytes)) << overrides_text(choice);
  }
  EXPECT_GT(priced, 3);
}

INSTANTIATE_TEST_SUITE_P(
    Ways, EveryOffloadedLayout,
    testing::Values(
        OffloadCase{"state", "optimizer = true\nweights = true", 4, 4, 1e10, true},
        OffloadCase{"stateSlowly", "optimizer = true", 4, 1, 1e8},
        OffloadCase{"activations", "activations = \"block\"", 8, 4, 1e10},
        OffloadCase{"activationsSlowly", "activations = \"block\"", 7, 2, 3e8, true},
        OffloadCase{"stateAndActivations", "optimizer = true\nweights = true\nactivations = \"block\"", 6, 2, 3e9},
        OffloadCase{"weightsOfBlocks", "optimizer = true\nweights = true\nworking_weights = true", 6, 4, 2e9},
        OffloadCase{"all", "optimizer = true\nweights = true\nworking_weights = true\nactivations = \"block\"", 7, 2,
                    2e9, true},
        OffloadCase{"nvme", "optimizer = true\nweights = true\nto = \"nvme\"\npath = \"disk\"", 5, 2, 1e10},
        OffloadCase{"experts", "activations = \"block\"", 6, 4, 2e9, false, true},
        OffloadCase{"allOfExperts", "optimizer = true\nweights = true\nworking_weights = true\nactivations = \"block\"",
                    5, 4, 2e9, false, true}),
    [](const auto& info) { return info.param.name; });

constexpr std::string_view kSmallBatch = "[batch]\nsequences = 2\nseq = 128\n";

class OffloadedSearch : public testing::Test {
 protected:
  explicit OffloadedSearch(const std::string& offload = "")
      : toml_(config_text(8, std::string(kSmallBatch) + offload)), run_(parse_config(toml_, "run.toml")) {}

  SearchRequest request() const {
    return {.run = run_, .spec = spec_, .machine = machine_, .profile = profile_, .devices = 1, .headroom = 0};
  }

  // All layouts of all of them, priced.
  std::vector<Candidate> priced(const std::vector<RunConfig>& runs) const {
    std::vector<RunConfig> all;
    for (const RunConfig& run : runs)
      for (const LayoutChoice& choice : layouts_of({run, spec_, machine_, 1})) all.push_back(with_choice(run, choice));
    return rank_layouts(all, request());
  }

  double least_bytes(const std::vector<RunConfig>& runs) const {
    auto least = std::ranges::min(priced(runs), {}, &Candidate::peak_bytes);
    return static_cast<double>(least.peak_bytes);
  }

  // A memory that the first rung needs, or the second, and that is enough for it.
  double memory_for(size_t rung) const {
    std::vector<OffloadRung> rungs = offload_rungs(request());
    const double before = least_bytes(rung == 0 ? std::vector{run_} : rungs.at(rung - 1).runs);
    const double there = least_bytes(rungs.at(rung).runs);
    EXPECT_LT(there, 0.98 * before);
    return (there + before) / 2;
  }

  void expect_best_of(const SearchResult& found, const std::vector<RunConfig>& runs) const {
    std::vector<Candidate> all = priced(runs);
    std::erase_if(all, [](const Candidate& candidate) { return !candidate.fits; });
    ASSERT_EQ(found.best.size(), std::min<size_t>(10, all.size()));
    for (size_t i = 0; i < found.best.size(); ++i) EXPECT_DOUBLE_EQ(found.best[i].seconds, all[i].seconds) << i;
  }

  // The overrides printed for a layout, appended to its config, give the plan that was priced.
  void expect_as_planned(const Candidate& layout) const {
    std::istringstream in(layout.overrides);
    std::vector<std::string> words;
    for (std::string word; in >> word;) words.push_back(word);
    const RunConfig config = parse_config(toml_, "run.toml", words);
    LoweredRun lowered = lower_run(config, spec_, planned_target(profile_));
    RunPlan plan = make_plan({.run = config, .lowered = lowered, .machine = &machine_, .profile = &profile_});
    ASSERT_TRUE(plan.step) << layout.overrides;
    EXPECT_EQ(plan.step->seconds, layout.seconds) << layout.overrides;
    EXPECT_EQ(plan.peak_bytes, layout.peak_bytes) << layout.overrides;
    EXPECT_EQ(plan.host_bytes, layout.host_bytes) << layout.overrides;
    EXPECT_EQ(plan.nvme_bytes, layout.nvme_bytes) << layout.overrides;
  }

  std::string refusal() const {
    try {
      search_layouts(request());
      return "it fits";
    } catch (const DoesNotFit& error) {
      return error.what();
    }
  }

  const std::string toml_;
  const RunConfig run_;
  const ModelSpec spec_ = resolve_model(run_);
  Machine machine_ = offloading_machine();
  const SoftwareProfile profile_ = own_profile();
};

// Rung by rung, and of each the best of all ways to offload that it has.
TEST_F(OffloadedSearch, PutsMoreOutsideTheDeviceUntilItFits) {
  for (size_t rung : {0, 1}) {
    machine_.device.memory_bytes = 8e9;
    machine_.device.memory_bytes = memory_for(rung);
    std::vector<std::string> said;
    SearchRequest asked = request();
    asked.progress = [&](std::string_view text) { said.emplace_back(text); };
    SearchResult found = search_layouts(asked);
    const std::vector<OffloadRung> rungs = offload_rungs(asked);
    expect_best_of(found, rungs[rung].runs);
    for (const auto* list : {&found.best, &found.pareto})
      for (const Candidate& layout : *list) expect_as_planned(layout);
    for (size_t i = 0; i < rungs.size(); ++i)
      EXPECT_EQ(std::ranges::count(said, rungs[i].about), i <= rung ? 1 : 0) << rungs[i].about;
    std::optional<Candidate> smallest = smallest_layout(asked);
    ASSERT_TRUE(smallest && smallest->fits);
    EXPECT_EQ(smallest->config.offload.working_weights, rung == 1);
  }
}

TEST_F(OffloadedSearch, LeavesWhatFitsOnTheDevice) {
  EXPECT_EQ(search_layouts(request()).best.at(0).config.offload, OffloadSection{});
}

// Optimizer state takes the disks where the host has no room for it.
TEST_F(OffloadedSearch, TakesDisksWhereTheHostIsTooSmall) {
  const std::vector<OffloadRung> rungs = offload_rungs(request());
  machine_.device.memory_bytes = 1.01 * least_bytes(rungs.at(0).runs);
  const SearchRequest asked = request();
  const Candidate on_host = search_layouts(asked).best.at(0);
  EXPECT_TRUE(on_host.config.offload.optimizer);
  machine_.host.memory_bytes = 0.6 * static_cast<double>(on_host.host_bytes);
  const SearchResult found = search_layouts(asked);
  const Candidate on_disk = found.best.at(0);
  EXPECT_NE(search_text(found).find("in place of DIRECTORY, name a directory"), std::string::npos);
  EXPECT_EQ(on_disk.config.offload.to, OffloadTarget::nvme);
  EXPECT_FALSE(on_disk.config.offload.working_weights);
  EXPECT_LE(static_cast<double>(on_disk.host_bytes), machine_.host.memory_bytes);
  EXPECT_GT(on_disk.seconds, on_host.seconds);
  EXPECT_NE(on_disk.overrides.find("offload.to=nvme offload.path=DIRECTORY"), std::string::npos) << on_disk.overrides;
  expect_as_planned(on_disk);
  EXPECT_TRUE(smallest_layout(asked)->fits);

  machine_.host.nvme_bytes = 0.9 * static_cast<double>(on_disk.nvme_bytes);
  std::string text = refusal();
  EXPECT_NE(text.find("on NVMe for each"), std::string::npos) << text;
  EXPECT_FALSE(smallest_layout(asked)->fits);
  machine_.host.nvme_bytes_per_s = machine_.host.nvme_bytes = 0;
  text = refusal();
  EXPECT_NE(text.find("on the host for each"), std::string::npos) << text;
}

// Where the device is what lacks memory, disks are of no use and are not tried.
TEST_F(OffloadedSearch, TakesNoDisksForWhatTheDeviceLacks) {
  machine_.device.memory_bytes = 2e6;
  std::vector<std::string> said;
  SearchRequest asked = request();
  asked.scope = SearchScope::fastest;
  asked.progress = [&](std::string_view text) { said.emplace_back(text); };
  EXPECT_THROW(search_layouts(asked), DoesNotFit);
  EXPECT_TRUE(std::ranges::none_of(said, [](const std::string& text) { return text.find("NVMe") != text.npos; }));
}

class GivenOffload : public OffloadedSearch {
 protected:
  GivenOffload() : OffloadedSearch("[offload]\nactivations = \"none\"\nto = \"host\"\nworking_weights = false\n") {}
};

// Keys that the config gives stay as they are.
TEST_F(GivenOffload, IsKept) {
  const std::vector<OffloadRung> rungs = offload_rungs(request());
  ASSERT_EQ(rungs.size(), 1U);
  ASSERT_EQ(rungs[0].runs.size(), 1U);
  machine_.device.memory_bytes = memory_for(0);
  const OffloadSection best = search_layouts(request()).best.at(0).config.offload;
  OffloadSection state;
  state.optimizer = state.weights = true;
  EXPECT_EQ(best, state);
}

class GivenActivations : public OffloadedSearch {
 protected:
  GivenActivations() : OffloadedSearch("[offload]\nactivations = \"block\"\n") {}
};

TEST_F(GivenActivations, AreSearchedOnTheHost) {
  SearchResult found = search_layouts(request());
  expect_best_of(found, {run_});
  for (const Candidate& layout : found.best) {
    EXPECT_EQ(layout.config.offload.activations, OffloadedActivations::block);
    EXPECT_GT(layout.host_bytes, 0);
    expect_as_planned(layout);
  }
}

// Of a CPU, and of other software, nothing is known.
TEST_F(OffloadedSearch, HasNoRungsWhereNothingIsKnownOfTheHost) {
  EXPECT_EQ(offload_rungs(request()).size(), 4U);
  machine_.host.nvme_bytes_per_s = machine_.host.nvme_bytes = 0;
  EXPECT_EQ(offload_rungs(request()).size(), 2U);
  machine_.host = {};
  EXPECT_TRUE(offload_rungs(request()).empty());
}

}  // namespace
}  // namespace sextant
