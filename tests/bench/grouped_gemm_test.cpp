// Grouped GEMMs: loads as they are asked for, the ops of a layer and of a config against lists made by hand, timed and
// verified; and the ops of a config's steps in place.
#include "bench/grouped_gemm.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "bench/expert_loads.h"
#include "bench/gemm.h"
#include "bench/traced_ops.h"
#include "config/load.h"
#include "config/resolve.h"
#include "exec/cpu/cpu_executor.h"
#include "targets/cpu/cpu_target.h"

namespace sextant {
namespace {

constexpr Repeat kOnce{.least = 1, .most = 1, .seconds = 0, .warm_seconds = 0};

TEST(ExpertLoads, AreEvenOrFallFromTheBusiest) {
  EXPECT_EQ(expert_loads(4, 1024, 1), (std::vector<int64_t>{256, 256, 256, 256}));
  std::vector<int64_t> uneven = expert_loads(3, 100, 1);
  EXPECT_EQ(std::accumulate(uneven.begin(), uneven.end(), int64_t{0}), 100);
  for (double imbalance : {1.5, 4.0, 8.0}) {
    std::vector<int64_t> loads = expert_loads(16, 16000, imbalance);
    EXPECT_EQ(std::accumulate(loads.begin(), loads.end(), int64_t{0}), 16000);
    EXPECT_NEAR(static_cast<double>(loads[0]), 1000 * imbalance, 1);
    EXPECT_TRUE(std::is_sorted(loads.rbegin(), loads.rend()));
  }
}

TEST(ExpertLoads, NoTokenHasAnExpertTwice) {
  constexpr int64_t kTokens = 60, kPerToken = 3;
  for (double imbalance : {1.0, 2.0, 4.0}) {  // at 4 every token has expert 0
    std::vector<int64_t> loads = expert_loads(12, kTokens * kPerToken, imbalance), counted(12, 0);
    std::vector<int32_t> experts = experts_of_tokens(kTokens, kPerToken, loads);
    for (int64_t t = 0; t < kTokens; ++t) {
      std::set<int32_t> own(experts.begin() + t * kPerToken, experts.begin() + (t + 1) * kPerToken);
      EXPECT_EQ(own.size(), 3u) << "token " << t;
      for (int32_t e : own) ++counted[static_cast<size_t>(e)];
    }
    EXPECT_EQ(counted, loads);
  }
}

TEST(GroupedGemm, ALayerHasSixAndTheyAreRight) {
  std::unique_ptr<Executor> executor = make_cpu_executor(2);
  constexpr double kFlops = 2.0 * 50 * 3 * 20 * 12;  // of one matrix of an expert, for all slots
  for (double imbalance : {1.0, 5.0 / 3}) {
    BenchReport report;
    bench_grouped_gemms(
        {.executor = *executor,
         .gemms = grouped_gemms_of(ExpertLayer{.experts = 5, .per_token = 3, .tokens = 50, .hidden = 20, .width = 12}),
         .types = {DType::f32},
         .imbalance = imbalance,
         .peaks = {{"fp32", 1e15}},
         .repeat = kOnce},
        report, {});
    ASSERT_EQ(report.results.size(), 6u);
    for (const BenchResult& r : report.results) {
      EXPECT_EQ(r.kind, "grouped gemm");
      EXPECT_LT(r.error, 1) << r.name;
      EXPECT_GT(r.error, 0) << r.name;
      EXPECT_DOUBLE_EQ(r.flops, kFlops * (r.name.starts_with("expert_up") ? 2 : 1)) << r.name;
      EXPECT_DOUBLE_EQ(r.peak_share, r.flops_per_s() / 1e15);
      EXPECT_EQ(r.shape.find("imbalance") != std::string::npos, imbalance > 1) << r.shape;
    }
    EXPECT_EQ(report.results[0].size, (std::vector<double>{5, 30, 24, 20}));
    EXPECT_EQ(report.results[5].name, "expert_down_weight_gradient");
    EXPECT_EQ(report.results[5].size, (std::vector<double>{5, 20, 12, 30}));
  }
}

struct OfConfig {
  RunConfig run;
  ModelSpec spec;
  LoweredRun lowered;
};

OfConfig of_config(const std::vector<std::string>& mesh) {
  std::vector<std::string> overrides{"model.architecture=mixtral",
                                     "model.layers=2",
                                     "model.hidden=32",
                                     "model.heads=2",
                                     "model.kv_heads=2",
                                     "model.ffn=40",
                                     "model.experts.count=4",
                                     "model.experts.per_token=2",
                                     "model.vocab=64",
                                     "batch.sequences=4",
                                     "batch.microbatch=1",
                                     "batch.seq=16",
                                     "train.eval_every=0"};
  overrides.insert(overrides.end(), mesh.begin(), mesh.end());
  RunConfig run = parse_config("", "test", overrides);
  ModelSpec spec = resolve_model(run);
  LoweredRun lowered = lower_run(run, spec, cpu_target(1));
  return {std::move(run), std::move(spec), std::move(lowered)};
}

std::set<std::string> names_of(const std::vector<GroupedGemm>& gemms) {
  std::set<std::string> names;
  for (const GroupedGemm& gemm : gemms) names.insert(std::string(gemm.def->name));
  return names;
}

TEST(GroupedGemm, ThoseOfAConfigAreTimedByThemselves) {
  std::unique_ptr<Executor> executor = make_cpu_executor(1);
  // Both halves of an expert on each rank, and both ways to bring tokens to experts.
  for (const std::vector<std::string>& mesh : {std::vector<std::string>{}, {"mesh.tp=2"}, {"mesh.dp=2", "mesh.ep=2"}}) {
    OfConfig config = of_config(mesh);
    bool rows = mesh.size() == 2;
    std::vector<GroupedGemm> gemms = grouped_gemms_of(config.lowered);
    EXPECT_EQ(gemms.size(), 6u);
    EXPECT_EQ(names_of(gemms).size(), rows ? 3u : 6u);
    BenchReport report;
    bench_grouped_gemms({.executor = *executor, .gemms = gemms, .types = {DType::f32}, .repeat = kOnce}, report, {});
    ASSERT_EQ(report.results.size(), 6u) << (report.findings.empty() ? "" : report.findings[0]);
    for (const BenchResult& r : report.results) {
      EXPECT_LT(r.error, 1) << r.name;
      EXPECT_EQ(r.size[0], rows ? 2 : 4) << r.name;
    }
    // None of them is among the single ones: no weight there has an expert's width.
    for (const GemmDims& shape : gemms_of(config.lowered))
      for (int64_t size : {shape.m, shape.n, shape.k}) EXPECT_TRUE(size != 20 && size != 40 && size != 80);
  }
}

TEST(TracedOps, EveryOpOfTheStepsIsTimedInPlace) {
  for (const std::vector<std::string>& mesh : {std::vector<std::string>{}, {"mesh.dp=2", "mesh.ep=2"}}) {
    OfConfig config = of_config(mesh);
    ExecutorMaker maker = [](const RankContext& context, int threads) { return make_cpu_executor(threads, context); };
    StepRequest steps{.run = config.run,
                      .spec = config.spec,
                      .make_executor = maker,
                      .at_least_s = 0,
                      .least_steps = 2,
                      .most_steps = 2};
    BenchReport report, routes;
    bench_traced_ops({.steps = steps}, config.lowered, report, {});
    std::set<std::string> timed;
    for (const BenchResult& r : report.results) timed.insert(r.name);
    for (const Region& region : config.lowered.programs.train[0].regions)
      for (const Op& op : region.ops)
        EXPECT_EQ(timed.contains(std::string(op.def->name)), !op.def->message) << op.def->name;
    bench_traced_ops({.steps = steps, .only = "route_backward"}, config.lowered, routes, {});
    ASSERT_EQ(routes.results.size(), 1u);
    // Two layers of two steps, four sequences in each, whatever ranks they are on.
    EXPECT_EQ(routes.results[0].samples.size(), 2u * 2 * 4);
    EXPECT_EQ(routes.results[0].shape, "1x16x2,1x16x4,1x16x2");
  }
}

}  // namespace
}  // namespace sextant
