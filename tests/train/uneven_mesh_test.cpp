// Meshes that divide neither weights nor vocabulary: parts are padded, and the losses are those of one rank.
#include <gtest/gtest.h>

#include "scratch_run.h"

namespace sextant {
namespace {

TEST(UnevenMeshes, TrainAsOneRankDoes) {
  ScratchRun scratch("uneven");
  const std::vector<std::string> common{"optimizer.eps=1e-6",          "optimizer.lr=1e-3",  "batch.sequences=6",
                                        "batch.microbatch=1",          "batch.seq=24",       "train.steps=4",
                                        "train.eval_every=4",          "train.timeout_s=60", "data.tokenizer_vocab=500",
                                        "train.check_replicas_every=1"};
  const std::vector<std::vector<std::string>> meshes{
      {"mesh.dp=3"},
      {"mesh.dp=3", "mesh.zero=1"},
      {"mesh.dp=3", "mesh.zero=2"},
      {"mesh.dp=3", "mesh.zero=3"},
      {"mesh.cp=3", "mesh.zero=3", "mesh.context=ring"},
      {"mesh.dp=3", "mesh.tp=2", "mesh.zero=3", "mesh.sequence_parallel=true"},
  };
  auto train_on = [&](const std::string& out, const std::string& file, const std::vector<std::string>& mesh) {
    std::vector<std::string> settings = common;
    settings.insert(settings.end(), mesh.begin(), mesh.end());
    scratch.run(out, settings, file);
    return scratch.losses(out);
  };
  for (const std::string file : {"tiny-llama.toml", "tiny-gpt2.toml"}) {
    std::vector<std::string> expected = train_on("one-" + file, file, {});
    for (size_t i = 0; i < meshes.size(); ++i) {
      SCOPED_TRACE(fmt::format("{} {}", file, fmt::join(meshes[i], " ")));
      std::vector<std::string> losses = train_on(fmt::format("{}-{}", i, file), file, meshes[i]);
      ASSERT_EQ(losses.size(), expected.size());
      for (size_t step = 0; step < losses.size(); ++step)
        EXPECT_NEAR(std::stod(losses[step]), std::stod(expected[step]), 1e-5 * std::stod(expected[step]))
            << "step " << step + 1;
    }
  }
}

}  // namespace
}  // namespace sextant
