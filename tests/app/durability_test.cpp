// The files of a training run survive a power failure at any moment: the order of its writes, flushes and renames,
// recorded.
#include <gtest/gtest.h>

#include "command.h"
#include "durability/disk_log.h"

namespace sextant {
namespace {

void expect_durable(const std::string& extra, size_t checkpoints) {
  if (!kDiskShimWorks) GTEST_SKIP() << "the recorder of system calls does not go beside a sanitizer";
  ScratchPlace place("durability");
  Outcome outcome =
      run_command(tiny_train(place, "train.steps=4 checkpoint.every=2 checkpoint.keep=1 train.eval_every=0 " + extra),
                  with_disk_log(place / "log"));
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  DiskRules rules(read_disk_log(place / "log"));
  size_t found = 0;
  for (size_t at : rules.publications()) found += rules[at].other.find("/run/step-") != std::string::npos ? 1 : 0;
  EXPECT_EQ(found, checkpoints);
  EXPECT_EQ(fmt::format("{}", fmt::join(rules.broken(), "\n")), "");
}

TEST(Durability, CheckpointsOfATrainingRun) {
  expect_durable("checkpoint.background=false", 2);
}

TEST(Durability, CheckpointsWrittenInTheBackgroundByTwoRanks) {
  expect_durable("mesh.dp=2 mesh.zero=1", 2);
}

}  // namespace
}  // namespace sextant
