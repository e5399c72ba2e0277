// The search against looking at everything: on machines and models small enough to lower every layout whole.
#include "search/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/rng.h"
#include "config/check.h"
#include "config/load.h"
#include "config/mesh_axes.h"
#include "config/resolve.h"
#include "cost/software_profile_file.h"
#include "search/layout_limits.h"
#include "search/search_bound.h"
#include "search/search_price.h"

namespace sextant {
namespace {

ModelSpec small_model(int64_t layers, bool tied) {
  return {.architecture = "llama",
          .layers = layers,
          .hidden = 256,
          .heads = 8,
          .kv_heads = 4,
          .head_dim = 32,
          .ffn = 768,
          .vocab = 2048,
          .max_seq = 4096,
          .tied_head = tied};
}

// Slow enough that a model of a few million parameters keeps it busy.
Machine small_machine(double memory_bytes) {
  Machine machine;
  machine.name = "small", machine.device.name = "small";
  machine.device.units = 8, machine.device.clock_hz = 1e9;
  machine.device.peaks = {{"bf16", 2e12}, {"fp32", 2e11}};
  machine.device.memory_bytes = memory_bytes, machine.device.memory_bytes_per_s = 1e11;
  machine.devices_per_node = 2;
  machine.levels = {{.name = "node", .devices = 2, .link = {2e10, 2e-6}},
                    {.name = "cluster", .devices = 0, .link = {4e9, 5e-6}}};
  machine.attention["cudnn"] = {0.5, 0.5, 0.4, 0.4};
  machine.context_bytes = 1e6;
  return machine;
}

RunConfig run_of(int64_t sequences, int64_t seq) {
  RunConfig run;
  run.batch.sequences = sequences, run.batch.seq = seq;
  return run;
}

void expect_bounds_below(const Candidate& price, LayoutBounds& bounds) {
  for (Closeness close : {Closeness::coarse, Closeness::sent, Closeness::tight, Closeness::walked}) {
    LeastCost least = bounds.bound(price.choice, close);
    EXPECT_LE(least.seconds, price.seconds) << overrides_text(price.choice) << " bound " << static_cast<int>(close);
    EXPECT_LE(least.bytes, static_cast<double>(price.peak_bytes)) << overrides_text(price.choice);
  }
}

struct Case {
  int64_t layers, devices, sequences;
  double memory;
  bool tied;
};

class EveryLayout : public testing::TestWithParam<Case> {
 protected:
  const Case at_ = GetParam();
  const ModelSpec spec_ = small_model(at_.layers, at_.tied);
  const Machine machine_ = small_machine(at_.memory);
  const SoftwareProfile profile_ = own_profile();
  const RunConfig run_ = run_of(at_.sequences, 512);
  const SearchRequest request_{
      .run = run_, .spec = spec_, .machine = machine_, .profile = profile_, .devices = at_.devices};

  std::vector<RunConfig> all() const {
    std::vector<RunConfig> configs;
    for (const LayoutChoice& choice : layouts_of({run_, spec_, machine_, at_.devices}))
      configs.push_back(with_choice(run_, choice));
    return configs;
  }
};

// Each needs less memory than all that are faster.
void expect_front(const SearchResult& found) {
  ASSERT_FALSE(found.pareto.empty());
  EXPECT_DOUBLE_EQ(found.pareto.front().seconds, found.best.front().seconds);
  for (size_t i = 1; i < found.pareto.size(); ++i) {
    EXPECT_GT(found.pareto[i].seconds, found.pareto[i - 1].seconds);
    EXPECT_LT(found.pareto[i].peak_bytes, found.pareto[i - 1].peak_bytes);
  }
}

TEST_P(EveryLayout, SearchFindsTheSameBestAsPricingAllOfThem) {
  SearchResult found = search_layouts(request_);
  std::vector<Candidate> ranked = rank_layouts(all(), request_);
  ASSERT_GE(ranked.size(), found.best.size());
  auto fitting = std::count_if(ranked.begin(), ranked.end(), [](const Candidate& c) { return c.fits; });
  ASSERT_EQ(found.best.size(), std::min<size_t>(10, static_cast<size_t>(fitting)));
  for (size_t i = 0; i < found.best.size(); ++i) {
    EXPECT_DOUBLE_EQ(found.best[i].seconds, ranked[i].seconds) << overrides_text(ranked[i].choice);
    EXPECT_EQ(found.best[i].peak_bytes, ranked[i].peak_bytes);
    EXPECT_TRUE(ranked[i].fits);
  }
  EXPECT_LT(found.counts.priced, ranked.size()) << "nothing was pruned";
  EXPECT_EQ(found.counts.considered, found.counts.priced + found.counts.too_large + found.counts.too_slow);
  expect_front(found);
}

TEST_P(EveryLayout, BoundsAreBelowWhatTheWholeProgramsTake) {
  RunConfig run = without_evaluation(run_);
  LayoutBounds bounds({run, spec_, machine_, profile_});
  std::vector<LayoutChoice> choices = layouts_of({run_, spec_, machine_, at_.devices});
  Random random(3, "layouts to try", static_cast<uint64_t>(at_.layers));
  for (uint64_t i = 0; i < 12; ++i) {
    const LayoutChoice& choice = choices[static_cast<size_t>(random.uniform(i) * static_cast<double>(choices.size()))];
    Candidate price = price_layout(with_choice(run_, choice), {spec_, machine_, profile_});
    expect_bounds_below(price, bounds);
    EXPECT_GT(bounds.bound(choice, Closeness::walked).seconds, 0.5 * price.seconds) << overrides_text(choice);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, EveryLayout,
                         testing::Values(Case{2, 2, 4, 8e9, false}, Case{3, 2, 2, 1.3e8, true},
                                         Case{4, 2, 4, 1.0e8, false}));

// Pipelines alone, one of each schedule, number of chunks and microbatch: whether weight gradients are deferred, and
// behind what the last backward stands, decides where a bound is nearest to the price. Stages of blocks and stages with
// ends only; a slow and a fast network.
TEST(Search, BoundsOfEveryScheduleAreBelowItsPrice) {
  const SoftwareProfile profile = own_profile();
  std::set<ScheduleKind> schedules;
  for (int64_t layers : {5, 8})
    for (double rate : {1e8, 4e10}) {
      const ModelSpec spec = small_model(layers, false);
      Machine machine = small_machine(8e9);
      for (Level& level : machine.levels) level.link = {rate, 2e-6};
      const RunConfig run = run_of(8, 256), trained = without_evaluation(run);
      LayoutBounds bounds({trained, spec, machine, profile});
      std::set<std::string> seen;
      for (const LayoutChoice& choice : layouts_of({run, spec, machine, 4})) {
        if (choice.mesh.pp != 4 || choice.microbatch > 2) continue;
        if (!seen.insert(fmt::format("{} {} {}", word_of(choice.schedule), choice.chunks, choice.microbatch)).second)
          continue;
        schedules.insert(choice.schedule);
        expect_bounds_below(price_layout(with_choice(trained, choice), {spec, machine, profile}), bounds);
      }
    }
  EXPECT_GE(schedules.size(), 5u);
}

// Embedding and head may stand in place of a layer each: 126 layers are dealt to 16 stages in 2, 4 or 8 chunks.
TEST(Search, TriesEveryNumberOfChunksThatDividesWell) {
  auto chunks_of = [](int64_t layers, int64_t stages) {
    std::set<int64_t> chunks;
    RunConfig run = run_of(stages, 64);
    for (const LayoutChoice& choice : layouts_of({run, small_model(layers, false), small_machine(1e9), stages}))
      if (choice.mesh.pp == stages && choice.schedule == ScheduleKind::interleaved) chunks.insert(choice.chunks);
    return chunks;
  };
  EXPECT_EQ(chunks_of(126, 16), (std::set<int64_t>{2, 4, 8}));
  EXPECT_EQ(chunks_of(80, 8), (std::set<int64_t>{2, 5, 10}));
  EXPECT_EQ(chunks_of(14, 4), (std::set<int64_t>{2, 4}));
}

// The config says how experts are divided; of the meshes those that can are tried, each with its Program.
TEST(Search, KeepsHowTheConfigDividesExperts) {
  ModelSpec spec = small_model(2, false);
  spec.architecture = "mixtral";
  spec.experts = ExpertsSpec{.count = 4, .per_token = 2, .ffn = 768, .normalise = true};
  RunConfig run = run_of(8, 64);
  run.mesh.ep = 2, run.mesh.etp = 1;
  Machine machine = small_machine(1e9);
  std::vector<LayoutChoice> choices = layouts_of({run, spec, machine, 4});
  ASSERT_FALSE(choices.empty());
  for (const LayoutChoice& choice : choices) {
    EXPECT_EQ(choice.mesh.ep, 2);
    EXPECT_EQ(mesh_of(with_choice(run, choice).mesh).ranks(ExpertRole::expert), 2);
    EXPECT_GE(choice.mesh.dp * choice.mesh.cp * choice.mesh.tp, 2);  // a stage of one rank cannot divide them
  }
}

// Under our own profile experts have the rows that are reserved, under others as many as tokens come; of these,
// megatron-moe-2026 waits for the host.
struct ExpertCase {
  double imbalance;
  const char* profile;  // null: our own
};

// Bounds are below what whole Programs take, and lead to the best of all layouts, where ranks divide experts too.
class EveryExpertLayout : public testing::TestWithParam<ExpertCase> {
 protected:
  EveryExpertLayout() {
    spec_.architecture = "mixtral";
    spec_.experts = ExpertsSpec{.count = 4, .per_token = 2, .ffn = 512, .normalise = true};
    run_.train.eval_every = 0;
  }
  ModelSpec spec_ = small_model(2, false);
  RunConfig run_ = run_of(8, 256);
  const ExpertImbalance imbalance_{GetParam().imbalance, "as the test says"};
  const Machine machine_ = small_machine(1.2e8);
  const SoftwareProfile profile_ =
      GetParam().profile ? profile_named(load_profiles(), GetParam().profile) : own_profile();

  void expect_bounds_below_prices(const std::vector<LayoutChoice>& choices) const {
    LayoutBounds bounds({run_, spec_, machine_, profile_, nullptr, imbalance_.ratio});
    Random random(5, "layouts of experts to try", static_cast<uint64_t>(spec_.layers));
    for (uint64_t i = 0; i < 24; ++i) {
      const LayoutChoice& choice =
          choices[static_cast<size_t>(random.uniform(i) * static_cast<double>(choices.size()))];
      Candidate price = price_layout(with_choice(run_, choice), {spec_, machine_, profile_, nullptr, imbalance_});
      expect_bounds_below(price, bounds);
      EXPECT_GT(bounds.bound(choice, Closeness::walked).seconds, 0.4 * price.seconds) << overrides_text(choice);
    }
  }
};

TEST_P(EveryExpertLayout, HasBoundsBelowItsPrice) {
  expect_bounds_below_prices(layouts_of({run_, spec_, machine_, 4}));
}

// Five blocks in four parts: one is longer than the others.
TEST_P(EveryExpertLayout, HasBoundsBelowItsPriceWithChunks) {
  spec_.layers = 5;
  LayoutLimits limits({"schedule=interleaved,zbv,dualpipev"}, "test");
  expect_bounds_below_prices(layouts_of({run_, spec_, machine_, 4, Breadth::usual, &limits}));
}

TEST_P(EveryExpertLayout, IsSearchedForTheBestOfAll) {
  LayoutLimits limits({"microbatch=1", "recompute=none,full", "sequence_parallel=true", "zero=0,2"}, "test");
  SearchRequest request{.run = run_,
                        .spec = spec_,
                        .machine = machine_,
                        .profile = profile_,
                        .devices = 4,
                        .limits = limits,
                        .imbalance = imbalance_};
  std::vector<RunConfig> configs;
  for (const LayoutChoice& choice : layouts_of({run_, spec_, machine_, 4, Breadth::usual, &limits}))
    configs.push_back(with_choice(run_, choice));
  SearchResult found = search_layouts(request);
  std::vector<Candidate> ranked = rank_layouts(configs, request);
  ASSERT_GE(ranked.size(), found.best.size());
  for (size_t i = 0; i < found.best.size(); ++i)
    EXPECT_DOUBLE_EQ(found.best[i].seconds, ranked[i].seconds) << overrides_text(ranked[i].choice);
  EXPECT_LT(found.counts.priced, ranked.size() / 2) << "little was pruned";
}

INSTANTIATE_TEST_SUITE_P(Imbalances, EveryExpertLayout,
                         testing::Values(ExpertCase{1, nullptr}, ExpertCase{1.5, nullptr},
                                         ExpertCase{1, "megatron-moe-2026"}, ExpertCase{1.5, "deepseek-v3"}));

// Only latent attention has up-projections to compute again.
TEST(Search, TriesLatentRecomputeWhereThereIsLatentAttention) {
  ModelSpec spec = small_model(2, false);
  Machine machine = small_machine(1e9);
  RunConfig run = run_of(8, 64);
  auto tried = [&] {
    std::vector<LayoutChoice> choices = layouts_of({run, spec, machine, 2});
    return std::ranges::count(choices, RecomputeMode::latent, &LayoutChoice::recompute);
  };
  EXPECT_EQ(tried(), 0);
  spec.latent = LatentSpec{};
  EXPECT_GT(tried(), 0);
}

TEST(Search, ResultsDoNotDependOnTheNumberOfThreads) {
  ModelSpec spec = small_model(2, false);
  Machine machine = small_machine(1.3e8);
  SoftwareProfile profile = own_profile();
  RunConfig run = run_of(4, 512);
  auto text = [&](int threads) {
    SearchResult result = search_layouts(
        {.run = run, .spec = spec, .machine = machine, .profile = profile, .devices = 2, .threads = threads});
    result.search_seconds = 0;
    return search_json(result);
  };
  EXPECT_EQ(text(1), text(3));
}

TEST(Search, ABatchThatNoMeshCanShareIsAnsweredWithTheNextOnes) {
  ModelSpec spec = small_model(2, false);  // at most two stages, at most two-way tensor parallel: dp is 2 at least
  Machine machine = small_machine(8e9);
  SoftwareProfile profile = own_profile();
  RunConfig run = run_of(7, 510);  // which context parallelism cannot cut
  try {
    search_layouts({.run = run, .spec = spec, .machine = machine, .profile = profile, .devices = 8});
    FAIL() << "7 sequences on 8 devices";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("batch.sequences=6 or 8"), std::string::npos) << error.what();
  }
}

TEST(Search, AModelThatFitsNowhereIsAnsweredWithTheLeastMemoryAndMoreDevices) {
  ModelSpec spec = small_model(4, false);
  Machine machine = small_machine(8e7);
  SoftwareProfile profile = own_profile();
  RunConfig run = run_of(8, 512);
  try {
    search_layouts({.run = run, .spec = spec, .machine = machine, .profile = profile, .devices = 1});
    FAIL() << "it fits";
  } catch (const UserError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::does_not_fit);
    std::string text = error.what();
    EXPECT_NE(text.find("the smallest needs"), std::string::npos) << text;
    EXPECT_NE(text.find("devices would do"), std::string::npos) << text;
  }
}

TEST(Search, OffersNoLayoutThatIsRefusedWithWeightsOnTheHost) {
  RunConfig run = parse_config(
      "[model]\narchitecture = \"llama\"\nlayers = 4\nhidden = 64\nheads = 4\nffn = 128\nvocab = 512\nmax_seq = 64\n"
      "[batch]\nsequences = 8\nseq = 64\n[offload]\noptimizer = true\nworking_weights = true\n",
      "run.toml");
  ModelSpec spec = resolve_model(run);
  Machine machine = small_machine(8e9);
  std::vector<LayoutChoice> layouts = layouts_of({run, spec, machine, 4, Breadth::wide});
  EXPECT_GT(layouts.size(), 100U);
  for (const LayoutChoice& choice : layouts) {
    std::vector<Complaint> complaints = check(with_choice(run, choice));
    ASSERT_TRUE(complaints.empty()) << overrides_text(choice) << ": " << complaints.front().got;
  }
}

TEST(Search, TextAndJsonTellTheSame) {
  ModelSpec spec = small_model(4, false);
  Machine machine = small_machine(8e9);
  SoftwareProfile profile = own_profile();
  RunConfig run = run_of(2, 512);
  SearchResult result =
      search_layouts({.run = run, .spec = spec, .machine = machine, .profile = profile, .devices = 2});
  auto json = nlohmann::json::parse(search_json(result));
  ASSERT_EQ(json["best"].size(), result.best.size());
  EXPECT_EQ(json["best"][0]["overrides"], overrides_text(result.best[0].choice));
  EXPECT_DOUBLE_EQ(json["best"][0]["seconds"].get<double>(), result.best[0].seconds);
  std::string text = search_text(result);
  EXPECT_NE(text.find(overrides_text(result.best[0].choice)), std::string::npos);
  EXPECT_NE(text.find("hurts: "), std::string::npos);
}

}  // namespace
}  // namespace sextant
