// A weight that differs from its replicas ends the run and is named, with the ranks that agree.
#include <gtest/gtest.h>

#include "processes.h"

namespace sextant {
namespace {

const std::string kReplicaRun =
    "model.layers=2 batch.microbatch=1 batch.seq=32 train.eval_every=0 train.timeout_s=20 "
    "train.check_replicas_every=1 ";

struct Case {
  const char* mesh;
  int rank;
  std::vector<std::string> words;
};

class Replicas : public testing::Test {
 protected:
  enum class Ranks { threads, processes };

  void expect_found(const Case& c, Ranks ranks = Ranks::threads) {
    ScratchPlace place("replicas");
    std::string fault = fmt::format("SEXTANT_FAULT=corrupt@3:{}", c.rank);
    Outcome outcome =
        run_command(tiny_train(place, kReplicaRun + c.mesh), ranks == Ranks::threads ? fault : under_mpirun(2, fault));
    EXPECT_EQ(outcome.code, 9) << c.mesh << "\n" << outcome.output;
    for (const std::string& word : c.words)
      EXPECT_NE(outcome.output.find(word), std::string::npos) << c.mesh << ": no '" << word << "' in\n"
                                                              << outcome.output;
  }
};

TEST_F(Replicas, ThatDifferAreNamed) {
  expect_found(
      {"mesh.dp=2", 1, {"in step 3", "replicas over dp", "embed", "differs between rank 0 and rank 1", "no majority"}});
  expect_found({"mesh.dp=4", 2, {"in step 3", "embed", "on rank 2 differs from that on ranks 0, 1, 3, which agree"}});
  expect_found({"mesh.dp=2 mesh.tp=2", 2, {"in step 3", "replicas over dp", "embed", "rank 0 and rank 2"}});
  for (const char* zero : {"mesh.dp=4 mesh.zero=1", "mesh.dp=4 mesh.zero=2"})
    expect_found({zero, 3, {"in step 3", "embed", "on rank 3 differs from that on ranks 0, 1, 2, which agree"}});
}

TEST_F(Replicas, ThatDifferAreNamedUnderMpirun) {
  if (!mpirun_works()) GTEST_SKIP() << "this build has no MPI, or there is no mpirun";
  expect_found({"mesh.dp=2", 1, {"in step 3", "embed", "differs between rank 0 and rank 1"}}, Ranks::processes);
}

TEST_F(Replicas, AreNotComparedWhenNotAsked) {
  ScratchPlace place("replicas");
  Outcome outcome =
      run_command(tiny_train(place, kReplicaRun + "mesh.dp=2 train.check_replicas_every=0 train.check_memory=false"),
                  "SEXTANT_FAULT=corrupt@3:1");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

}  // namespace
}  // namespace sextant
