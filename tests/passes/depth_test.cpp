// Lowering a model takes time in proportion to its depth: a model of ten thousand blocks is planned in seconds, not
// hours.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <limits>

#include "exec/cpu/cpu_executor.h"
#include "models/model.h"
#include "passes/lower.h"
#include "passes/stages.h"
#include "targets/cpu/cpu_target.h"

namespace sextant {
namespace {

Graph deep_model(int64_t layers, const Mesh& mesh) {
  ModelSpec spec{.architecture = "llama",
                 .layers = layers,
                 .hidden = 8,
                 .heads = 2,
                 .kv_heads = 2,
                 .head_dim = 4,
                 .ffn = 16,
                 .vocab = 50,
                 .max_seq = 8,
                 .tied_head = true};
  return build_model(spec, {.batch = 1, .seq = 8}, mesh);
}

// Of the processor, not of the clock on the wall: other programs may run beside this one.
template <class Work>
double seconds_of(Work work) {
  std::timespec before{}, after{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
  work();
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
  return static_cast<double>(after.tv_sec - before.tv_sec) + 1e-9 * static_cast<double>(after.tv_nsec - before.tv_nsec);
}

// How much longer the second takes, from the fastest of some trials each; no more trials once that is below `enough`.
template <class Work>
double ratio_of(Work work, int64_t small, int64_t large, double enough) {
  double least_small = std::numeric_limits<double>::infinity(), least_large = least_small;
  for (int trial = 0; trial < 4 && !(least_large < enough * least_small); ++trial) {
    least_small = std::min(least_small, seconds_of([&] { work(small); }));
    least_large = std::min(least_large, seconds_of([&] { work(large); }));
  }
  return least_large / least_small;
}

// Eight times as deep: 8 when time grows with depth, 64 when it grows with its square.
constexpr double kNotQuadratic = 16;

TEST(Depth, LoweringTakesTimeInProportion) {
  auto lowered = [](int64_t layers) {
    LowerOptions options{.train = Optimizer{}, .checks = Checks::end};
    lower(deep_model(layers, single_rank_mesh()), cpu_target(1), options);
  };
  EXPECT_LT(ratio_of(lowered, 200, 1600, kNotQuadratic), kNotQuadratic);
}

TEST(Depth, BalancingStagesTakesTimeInProportion) {
  auto balanced = [](int64_t layers) {
    Graph graph = deep_model(layers, single_rank_mesh());
    std::vector<int> blocks = balanced_blocks(graph, 7);
    EXPECT_EQ(blocks.size(), 7u);
  };
  EXPECT_LT(ratio_of(balanced, 500, 4000, kNotQuadratic), kNotQuadratic);
}

}  // namespace
}  // namespace sextant
