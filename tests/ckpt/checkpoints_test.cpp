// Finding and pruning the checkpoints of a run.
#include "ckpt/checkpoints.h"

#include <sys/stat.h>
#include <unistd.h>

#include "ckpt/staged_directory.h"
#include "scratch.h"

namespace sextant {
namespace {

using Checkpoints = Scratch;

std::vector<int64_t> steps(const std::filesystem::path& run, std::string_view witness = "") {
  std::vector<int64_t> out;
  for (const Checkpoint& checkpoint : list_checkpoints(run, witness)) out.push_back(checkpoint.step);
  return out;
}

using Steps = std::vector<int64_t>;

TEST_F(Checkpoints, NamesCheckpointsByStep) {
  EXPECT_EQ(checkpoint_path("run", 12), "run/step-000012");
  EXPECT_EQ(checkpoint_path("run", 12'345'678), "run/step-12345678");
}

TEST_F(Checkpoints, FindsTheNewestByNumber) {
  EXPECT_FALSE(latest_checkpoint(root));
  EXPECT_FALSE(latest_checkpoint(root / "nowhere"));
  for (int64_t step : {20, 999'999, 1'000'000, 3}) write_text(checkpoint_path(root, step) / "state.json", "{}");
  write_text(root / "step-9999999", "a file");
  for (std::string_view other : {"step-", "step-x", "step-12x", "step--5", "best", "step-99999999999999999999999"})
    std::filesystem::create_directory(root / other);
  StagedDirectory unfinished(checkpoint_path(root, 2'000'000), Existing::refuse);
  EXPECT_EQ(steps(root), (Steps{3, 20, 999'999, 1'000'000}));
  EXPECT_EQ(latest_checkpoint(root)->path, root / "step-1000000");
}

TEST_F(Checkpoints, TakesOnlyCompleteOnes) {
  write_text(checkpoint_path(root, 1) / "state.json", "{}");
  write_text(checkpoint_path(root, 2) / "weights", "no state beside it");
  EXPECT_EQ(latest_checkpoint(root)->step, 2);
  EXPECT_EQ(latest_checkpoint(root, "state.json")->step, 1);
}

TEST_F(Checkpoints, ALinkIsNone) {
  write_text(root / "archive" / "state.json", "{}");
  std::filesystem::create_directory(root / "run");
  std::filesystem::create_directory_symlink(root / "archive", root / "run" / "step-000001");
  write_text(root / "run" / "step-000002" / "state.json", "{}");
  EXPECT_EQ(steps(root / "run"), Steps{2});
}

TEST_F(Checkpoints, SaysWhenARunCannotBeRead) {
  write_text(root / "file", "");
  EXPECT_IN("cannot be read", message_of<UserError>([&] { list_checkpoints(root / "file"); }));
}

}  // namespace
}  // namespace sextant
