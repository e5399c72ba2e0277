// Fused ops against their expansion: the same training run with each of the fusions a target may ask for.
#include "passes/fuse.h"

#include <gtest/gtest.h>

#include "models/model.h"
#include "passes/lower.h"
#include "scratch_run.h"
#include "targets/cpu/cpu_target.h"

namespace sextant {
namespace {

// The CPU with the wish for some fusions.
class Fusing final : public Executor {
 public:
  Fusing(std::unique_ptr<Executor> cpu, std::vector<std::string_view> fusions)
      : cpu_(std::move(cpu)), fusions_(std::move(fusions)) {}

  Target target() const override {
    Target target = cpu_->target();
    target.fusions = fusions_;
    return target;
  }
  std::unique_ptr<Arena> allocate(int64_t bytes, int64_t host_bytes, const FileSpace& file) override {
    return cpu_->allocate(bytes, host_bytes, file);
  }
  std::unique_ptr<Bound> bind(const Program& program, Arena& arena) override { return cpu_->bind(program, arena); }
  std::map<std::string, int64_t> bytes_sent() const override { return cpu_->bytes_sent(); }

 private:
  std::unique_ptr<Executor> cpu_;
  std::vector<std::string_view> fusions_;
};

std::vector<std::string> losses_with(ScratchRun& scratch, const std::string& out, const char* file,
                                     const std::vector<std::string_view>& fusions, const std::string& recompute,
                                     const std::vector<std::string>& mesh = {}) {
  std::vector<std::string> settings{"train.steps=6", "train.eval_every=6", "train.recompute=" + recompute};
  settings.insert(settings.end(), mesh.begin(), mesh.end());
  RunConfig run = scratch.config(file, settings);
  train(run, scratch.root() / out, [&](const RankContext& context, int threads) {
    return std::make_unique<Fusing>(make_cpu_executor(threads, context), fusions);
  });
  return scratch.losses(out);
}

class Fusions : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, Fusions, testing::Values("tiny-llama.toml", "tiny-gpt2.toml", "tiny-moe.toml"),
                         [](const auto& info) {
                           std::string_view file = info.param;
                           return std::string(file.substr(5, file.find('.') - 5));
                         });

TEST_P(Fusions, TrainAsTheirExpansionsDo) {
  ScratchRun scratch("fuse");
  std::vector<std::string_view> all(fusion_names().begin(), fusion_names().end());
  for (std::string recompute : {"none", "selective"}) {
    std::vector<std::string> plain = losses_with(scratch, "plain-" + recompute, GetParam(), {}, recompute);
    ASSERT_EQ(plain.size(), 6u);
    std::vector<std::vector<std::string_view>> sets{all};
    for (std::string_view one : all) sets.push_back({one});
    for (const auto& set : sets) {
      std::string name = fmt::format("{}-{}", fmt::join(set, "+"), recompute);
      std::vector<std::string> fused = losses_with(scratch, name, GetParam(), set, recompute);
      ASSERT_EQ(fused.size(), plain.size());
      for (size_t i = 0; i < plain.size(); ++i)
        EXPECT_NEAR(std::stod(fused[i]), std::stod(plain[i]), 2e-6 * std::stod(plain[i])) << name << ", step " << i + 1;
    }
  }
}

// The largest magnitude that an op finds while it writes is the one that absmax finds behind it, and scales are alike.
TEST(Fuse, OpsFindTheMagnitudesOfFp8) {
  for (auto [file, recompute] : {std::pair{"tiny-llama.toml", "full"}, {"tiny-gpt2.toml", "none"}}) {
    ScratchRun scratch("fuse-fp8");
    auto losses = [&](const std::string& out, const std::vector<std::string_view>& fusions) {
      return losses_with(scratch, out, file, fusions, recompute, {"train.precision=fp8", "train.steps=3"});
    };
    std::vector<std::string> plain = losses("plain", {});
    ASSERT_EQ(plain.size(), 3u);
    EXPECT_EQ(losses("amax", {"amax"}), plain) << file;
    // The sums of other fusions are rounded otherwise, by which a code may become its neighbour.
    std::vector<std::string> all = losses("all", {"add_norm", "norm_gradient", "amax"});
    for (size_t i = 0; i < plain.size(); ++i)
      EXPECT_NEAR(std::stod(all[i]), std::stod(plain[i]), 2e-4 * std::stod(plain[i])) << file << ", step " << i + 1;
  }
}

// The order of slots is a rank's own, wherever its tokens come from.
TEST(Fuse, SortsSlotsOfEveryRank) {
  ScratchRun scratch("fuse-mesh");
  const char* file = "tiny-moe.toml";
  const std::vector<std::vector<std::string>> meshes{{"mesh.dp=2", "mesh.tp=2", "batch.microbatch=2"},
                                                     {"mesh.cp=2", "mesh.zero=0"},
                                                     {"mesh.dp=2", "mesh.pp=2", "mesh.zero=3", "batch.microbatch=1"}};
  for (size_t i = 0; i < meshes.size(); ++i) {
    std::vector<std::string> plain = losses_with(scratch, fmt::format("plain-{}", i), file, {}, "none", meshes[i]);
    std::vector<std::string> sorted =
        losses_with(scratch, fmt::format("sorted-{}", i), file, {"slot_order"}, "none", meshes[i]);
    EXPECT_EQ(sorted, plain) << fmt::format("{}", fmt::join(meshes[i], " "));
  }
}

// That there was something to fuse: fewer ops than before, by the count that the model's structure gives.
TEST(Fuse, FindsEveryPair) {
  ScratchRun scratch("fuse-count");
  RunConfig run = scratch.config("tiny-gpt2.toml", {});
  ModelSpec spec{.architecture = "gpt2",
                 .layers = 3,
                 .hidden = 32,
                 .heads = 4,
                 .kv_heads = 4,
                 .head_dim = 8,
                 .ffn = 64,
                 .vocab = 50,
                 .max_seq = 16,
                 .tied_head = true};
  auto count_ops = [&](std::vector<std::string_view> fusions) {
    Target target = cpu_target(1);
    target.fusions = std::move(fusions);
    Program program =
        lower(build_model(spec, {.batch = 2, .seq = 16}, single_rank_mesh()), target, {.train = Optimizer{}});
    size_t count = 0;
    for (const Region& region : program.regions) count += region.ops.size();
    return count;
  };
  size_t plain = count_ops({});
  EXPECT_EQ(plain - count_ops({"add_norm"}), 6u);       // two halves of three blocks; the embedding's sum is no add
  EXPECT_EQ(plain - count_ops({"norm_gradient"}), 6u);  // as many come back
  EXPECT_EQ(plain - count_ops({"gelu"}), 3u);
  EXPECT_EQ(plain - count_ops({"gelu_gradient"}), 3u);
  EXPECT_EQ(plain - count_ops({"gradients"}), 12u);  // four GEMMs with a bias in each block
  EXPECT_EQ(count_ops({"slot_order"}), plain);       // no experts
}

}  // namespace
}  // namespace sextant
