// One process per rank under mpirun: the same losses as one rank alone, and a world that does not fit is refused once.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files.h"
#include "processes.h"

namespace sextant {
namespace {

const std::string kMpiRun =
    "model.layers=4 batch.microbatch=1 batch.seq=32 optimizer.eps=1e-6 optimizer.lr=1e-3 train.eval_every=0 "
    "train.timeout_s=20 ";

std::vector<double> losses_in(const std::string& metrics) {
  std::vector<double> losses;
  std::istringstream lines(read_file(metrics));
  for (std::string line; std::getline(lines, line);) losses.push_back(nlohmann::json::parse(line)["loss"]);
  return losses;
}

class Mpi : public testing::Test {
 protected:
  void SetUp() override {
    if (!mpirun_works()) GTEST_SKIP() << "this build has no MPI, or there is no mpirun";
  }
};

TEST_F(Mpi, LossesAreThoseOfOneRank) {
  ScratchPlace place("mpi");
  Outcome alone = run_command(tiny_train(place, kMpiRun));
  ASSERT_EQ(alone.code, 0) << alone.output;
  std::vector<double> expected = losses_in(place / "run/metrics.jsonl");
  ASSERT_EQ(expected.size(), 10u);
  struct Case {
    const char* mesh;
    int ranks;
  };
  for (const Case& c : {Case{"mesh.dp=2 mesh.tp=2", 4}, Case{"mesh.pp=2", 2}, Case{"mesh.dp=4 mesh.zero=3", 4}}) {
    std::filesystem::remove_all(place.path() / "run");
    Outcome many = run_command(tiny_train(place, kMpiRun + c.mesh), under_mpirun(c.ranks));
    ASSERT_EQ(many.code, 0) << c.mesh << "\n" << many.output;
    EXPECT_EQ(count_of(many.output, "step 10/10"), 1u) << many.output;  // only one of them prints
    std::vector<double> losses = losses_in(place / "run/metrics.jsonl");
    ASSERT_EQ(losses.size(), expected.size()) << c.mesh;
    for (size_t i = 0; i < losses.size(); ++i)
      EXPECT_NEAR(losses[i], expected[i], 1e-5 * expected[i]) << c.mesh << " step " << i + 1;
  }
}

// The cache is made by the leader before the others look for it, also when it is new to all of them.
TEST_F(Mpi, ResumesWhereThreadsStopped) {
  ScratchPlace place("mpi-resume");
  std::string settings = kMpiRun + "mesh.dp=2 optimizer.schedule=constant ";
  ASSERT_EQ(run_command(tiny_train(place, settings + "train.steps=4"), under_mpirun(2)).code, 0);
  Outcome threads = run_command(tiny_train(place, settings + "train.steps=8"));
  EXPECT_EQ(threads.code, 0) << threads.output;
  EXPECT_NE(threads.output.find("step-000004 (step 4)"), std::string::npos) << threads.output;
  std::vector<double> mixed = losses_in(place / "run/metrics.jsonl");
  std::filesystem::remove_all(place.path() / "run");
  ASSERT_EQ(run_command(tiny_train(place, settings + "train.steps=8"), under_mpirun(2)).code, 0);
  EXPECT_EQ(losses_in(place / "run/metrics.jsonl"), mixed);  // threads and MPI add in the same order: bit for bit
}

TEST_F(Mpi, AWorldThatDoesNotFitIsRefusedOnce) {
  ScratchPlace place("mpi-world");
  Outcome outcome = run_command(tiny_train(place, kMpiRun + "mesh.dp=2"), under_mpirun(4));
  EXPECT_EQ(outcome.code, 2) << outcome.output;
  EXPECT_NE(outcome.output.find("4 ranks, but the mesh dp 2 × tp 1 × pp 1 × cp 1 has 2"), std::string::npos)
      << outcome.output;
  EXPECT_NE(outcome.output.find("try mesh.dp=4, or mesh.dp=2 mesh.tp=2, or"), std::string::npos) << outcome.output;
  EXPECT_EQ(count_of(outcome.output, "sextant: "), 1u) << outcome.output;
  // An error that only the leader can meet comes from it alone, and is not drowned by the others.
  Outcome bad = run_command(tiny_train(place, kMpiRun + "mesh.dp=2 data.train=/nowhere.txt"), under_mpirun(2));
  EXPECT_EQ(bad.code, 2) << bad.output;
  EXPECT_NE(bad.output.find("/nowhere.txt"), std::string::npos) << bad.output;
}

TEST(Ranks, AreCountedWhenAsked) {
  ScratchPlace place("ranks");
  Outcome outcome = run_command(tiny_train(place, "--ranks 8 batch.microbatch=1 mesh.tp=2"));
  EXPECT_EQ(outcome.code, 2) << outcome.output;
  EXPECT_NE(outcome.output.find("--ranks: 8 ranks, but the mesh"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("mesh.dp=4 mesh.tp=2"), std::string::npos) << outcome.output;
  EXPECT_EQ(run_command(tiny_train(place, "--ranks 2 batch.microbatch=1 mesh.tp=2 train.steps=1")).code, 0);
}

}  // namespace
}  // namespace sextant
