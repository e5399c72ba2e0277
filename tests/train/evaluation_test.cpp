// The validation loss is of a number of sequences, not of microbatches: how the run is cut up does not change what is
// measured.
#include <gtest/gtest.h>

#include "scratch_run.h"

namespace sextant {
namespace {

TEST(Evaluation, IsOfTheSameSequencesForEveryMicrobatchAndMesh) {
  ScratchRun scratch("evaluation");
  int runs = 0;
  auto loss = [&](int sequences, std::vector<std::string> more) {
    std::vector<std::string> settings{"train.steps=1",      "train.eval_every=1",
                                      "batch.sequences=12", "batch.seq=32",
                                      "optimizer.lr=1e-4",  "optimizer.eps=1e-6",
                                      "optimizer.warmup=0", fmt::format("train.eval_sequences={}", sequences)};
    settings.insert(settings.end(), more.begin(), more.end());
    return *scratch.run(fmt::format("run-{}", runs++), settings).validation_loss;
  };
  const double expected = loss(7, {"batch.microbatch=1"});  // 7: no microbatch but 1 divides it
  EXPECT_GT(std::abs(loss(8, {"batch.microbatch=1"}) - expected), 1e-4) << "another sequence changes nothing";
  for (const std::vector<std::string>& cut :
       std::vector<std::vector<std::string>>{{"batch.microbatch=2"},
                                             {"batch.microbatch=3"},
                                             {"batch.microbatch=4"},
                                             {"batch.microbatch=12"},
                                             {"batch.microbatch=1", "mesh.dp=2"},
                                             {"batch.microbatch=3", "mesh.dp=2"},
                                             {"batch.microbatch=2", "mesh.dp=2", "mesh.tp=2"},
                                             {"batch.microbatch=3", "mesh.pp=2"}})
    EXPECT_NEAR(loss(7, cut), expected, 1e-6 * expected) << fmt::format("{}", fmt::join(cut, " "));
}

}  // namespace
}  // namespace sextant
