// Local checkpoints: a run that ends anywhere resumes from the newest copy that is whole on all ranks, with the bits of
// a run that was left alone; damage, lost hosts and other meshes lead to an older copy, a replica's, a peer's, or the
// durable checkpoint; and copies of steps that were left behind are never taken.
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "ckpt/checkpoints.h"
#include "events/run_event.h"
#include "scratch_run.h"
#include "train/save/local_copy.h"
#include "train/save/local_folder.h"
#include "train/save/replication.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

using Settings = std::vector<std::string>;

class LocalRuns : public testing::Test {
 protected:
  LocalRuns() : scratch_(testing::UnitTest::GetInstance()->current_test_info()->name()) {}

  RunConfig config(const Settings& settings) const {
    Settings all{"model.architecture=llama",
                 "model.layers=2",
                 "model.hidden=32",
                 "model.heads=4",
                 "model.kv_heads=2",
                 "model.ffn=64",
                 "data.tokenizer_vocab=300",
                 "data.stories_bytes=60000",
                 "batch.sequences=4",
                 "batch.microbatch=1",
                 "batch.seq=16",
                 "train.steps=8",
                 "train.eval_every=0",
                 "train.threads=1",
                 "optimizer.lr=0.003",
                 fmt::format("data.cache={}", (scratch_.root() / "cache").string())};
    all.insert(all.end(), settings.begin(), settings.end());
    return load_config("", all);
  }
  Settings local(Settings more) const {
    more.insert(more.begin(), {"checkpoint.local_every=2",
                               fmt::format("checkpoint.local_dir={}", (scratch_.root() / "memory").string())});
    return more;
  }
  TrainResult run(const Settings& settings, std::string_view out = "run", const std::vector<std::string>& faults = {}) {
    std::vector<Fault> parsed;
    for (const std::string& fault : faults) parsed.push_back(parse_fault(fault, "test"));
    return train(config(settings), scratch_.root() / out, cpu_ranks(), {}, {.verbosity = Verbosity::quiet}, parsed);
  }
  // Fails before step 7: the copies are those of steps 4 and 6.
  void fail_at_seven(const Settings& settings) { EXPECT_THROW(run(local(settings), "run", {"throw@7:0"}), RunError); }
  std::vector<std::string> losses(std::string_view out = "run") const { return scratch_.losses(out); }
  fs::path folder() const { return known_local_folder(scratch_.root() / "run"); }
  fs::path held_by(int rank) const { return folder() / fmt::format("held-by-{}", rank); }
  std::vector<LocalCopy> copies() const {
    std::vector<std::string> problems;
    return list_local_copies(folder(), problems);
  }
  // The step that the last start went on from; 0: it began anew.
  int64_t resumed_from() const {
    int64_t step = -1;
    for (const RunEvent& event : read_events(scratch_.root() / "run"))
      if (event.kind == EventKind::resume || event.kind == EventKind::start) step = event.step.value_or(0) - 1;
    return step;
  }
  void expect_goes_on(const Settings& settings, int64_t from, const std::vector<std::string>& expected) {
    EXPECT_EQ(run(local(settings)).outcome, ExitCode::finished);
    EXPECT_EQ(resumed_from(), from);
    EXPECT_EQ(losses(), expected);
    EXPECT_FALSE(fs::exists(folder())) << "a run that is done needs none";
  }
  void damage(const fs::path& file) const {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(1000);
    char byte = 0;
    stream.seekg(1000).get(byte);
    stream.seekp(1000).put(static_cast<char>(byte ^ 1));
  }

  ScratchRun scratch_;
};

struct MeshOfTest {
  const char* name;
  Settings settings;
};

TEST_F(LocalRuns, EveryMeshGoesOnFromTheLastCopyWithTheSameBits) {
  const MeshOfTest meshes[] = {{"one rank", {}},
                               {"dp2 tp2", {"mesh.dp=2", "mesh.tp=2"}},
                               {"zero1 in 8 bits", {"mesh.dp=2", "mesh.zero=1", "optimizer.state=int8"}},
                               {"pp2", {"mesh.pp=2"}}};
  for (const MeshOfTest& mesh : meshes) {
    for (const char* out : {"run", "plain"}) fs::remove_all(scratch_.root() / out);
    run(mesh.settings, "plain");
    fail_at_seven(mesh.settings);
    EXPECT_TRUE(list_checkpoints(scratch_.root() / "run").empty()) << mesh.name;
    expect_goes_on(mesh.settings, 6, losses("plain"));
  }
}

TEST_F(LocalRuns, DamagedCopiesAreRefusedAndOlderOnesTaken) {
  Settings mesh{"mesh.dp=2", "mesh.zero=1", "checkpoint.every=3", "checkpoint.background=false"};
  run(mesh, "plain");
  struct Case {
    const char* what;
    int64_t from;
    std::function<void(const LocalCopy& newest, const LocalCopy& older)> harm;
  };
  const Case cases[] = {
      {"a bit", 6, [&](const LocalCopy& newest, const LocalCopy&) { damage(newest.data); }},
      {"a cut file", 6, [](const LocalCopy& newest, const LocalCopy&) { fs::resize_file(newest.data, 100); }},
      {"a cut manifest", 6,
       [](const LocalCopy& newest, const LocalCopy&) {
         fs::resize_file(fs::path(newest.data).replace_extension(".json"), 40);
       }},
      {"a copy that was being written", 6, [](const LocalCopy& newest, const LocalCopy&) {
         fs::remove(fs::path(newest.data).replace_extension(".json"));
       }}};
  // The durable checkpoint of step 6 is as new as the copies: it stands in for them.
  for (const Case& c : cases) {
    fs::remove_all(scratch_.root() / "run");
    fail_at_seven(mesh);
    std::optional<LocalCopy> newest, older;
    for (const LocalCopy& copy : copies())
      if (copy.manifest.rank == 1) (copy.manifest.step == 6 ? newest : older) = copy;
    ASSERT_TRUE(newest && older) << c.what;
    c.harm(*newest, *older);
    expect_goes_on(mesh, c.from, losses("plain"));
  }
  // Without it, the older copies are.
  Settings without{"mesh.dp=2", "mesh.zero=1"};
  for (size_t i = 0; i < std::size(cases); ++i) {
    fs::remove_all(scratch_.root() / "run");
    fail_at_seven(without);
    std::optional<LocalCopy> newest, older;
    for (const LocalCopy& copy : copies())
      if (copy.manifest.rank == 1) (copy.manifest.step == 6 ? newest : older) = copy;
    ASSERT_TRUE(newest && older);
    cases[i].harm(*newest, *older);
    if (i == 0) damage(older->data);
    expect_goes_on(without, i == 0 ? 0 : 4, losses("plain"));
  }
}

TEST_F(LocalRuns, ANodeMayBeLostWherePeersKeepCopies) {
  Settings mesh{"mesh.dp=2", "mesh.tp=2", "mesh.zero=1"};
  run(mesh, "plain");
  Settings peers = mesh;
  peers.push_back("checkpoint.replication_jump=2");
  fail_at_seven(peers);
  EXPECT_EQ(copies().size(), 4u * 2 * 2);  // of four ranks, in two places, two steps
  for (int rank : {0, 1}) fs::remove_all(held_by(rank));
  expect_goes_on(peers, 6, losses("plain"));
  // Without peers there is nothing to go on from.
  fs::remove_all(scratch_.root() / "run");
  fail_at_seven(mesh);
  for (int rank : {0, 1}) fs::remove_all(held_by(rank));
  expect_goes_on(mesh, 0, losses("plain"));
}

TEST_F(LocalRuns, ReplicasStandInForEachOtherAlsoOnAnotherMesh) {
  run({"mesh.dp=2"}, "plain");
  fail_at_seven({"mesh.dp=2"});
  fs::remove_all(held_by(0));
  expect_goes_on({"mesh.dp=2"}, 6, losses("plain"));
  // Data-parallel ranks hold the same: one of them is enough for a smaller mesh, and for a larger one.
  fs::remove_all(scratch_.root() / "run");
  fail_at_seven({"mesh.dp=2"});
  run(local({"mesh.dp=1"}));
  EXPECT_EQ(resumed_from(), 6);
  // Tensor-parallel ranks do not.
  fs::remove_all(scratch_.root() / "run");
  fail_at_seven({"mesh.dp=2"});
  run(local({"mesh.tp=2"}));
  EXPECT_EQ(resumed_from(), 0);
}

TEST_F(LocalRuns, CopiesOfStepsThatWereLeftAreNotTaken) {
  // Another run in the same place.
  run({}, "plain");
  fail_at_seven({});
  fs::path old = folder();
  fs::remove_all(scratch_.root() / "run");
  expect_goes_on({}, 0, losses("plain"));
  EXPECT_FALSE(fs::exists(old));
  // A roll-back.
  fs::remove_all(scratch_.root() / "run");
  EXPECT_THROW(
      run(local({"checkpoint.every=2", "checkpoint.background=false", "checkpoint.keep=0"}), "run", {"throw@8"}),
      RunError);
  run(local(
      {"train.steps=4", fmt::format("checkpoint.resume={}", checkpoint_path(scratch_.root() / "run", 2).string())}));
  EXPECT_EQ(resumed_from(), 2);
  // A step that was not finite: the copies may hold what made it so.
  fs::remove_all(scratch_.root() / "run");
  TrainResult spoiled = run(local({"train.non_finite_steps=1"}), "run", {"nan@7"});
  EXPECT_EQ(spoiled.outcome, ExitCode::non_finite);
  EXPECT_FALSE(fs::exists(folder()));
}

TEST_F(LocalRuns, TooLittleRoomIsRefusedAtTheStart) {
  Settings settings = local({});
  settings[1] = "checkpoint.local_dir=/proc/no-such-place";
  try {
    run(settings);
    FAIL() << "it ran";
  } catch (const RunError& error) {
    EXPECT_NE(std::string(error.what()).find("no room for local checkpoints"), std::string::npos) << error.what();
  }
}

TEST(Replication, GoesToTheNextHostUnlessAReplicaIsThere) {
  auto ranks = [](std::vector<uint64_t> hosts, std::vector<uint64_t> layouts) {
    std::vector<RankPlace> places;
    for (size_t i = 0; i < hosts.size(); ++i) places.push_back({hosts[i], layouts[i]});
    return places;
  };
  using Holders = std::vector<int>;
  EXPECT_EQ(copy_holders(ranks({1, 1, 1}, {1, 2, 3}), 0), (Holders{-1, -1, -1}));
  EXPECT_EQ(copy_holders(ranks({1, 1, 2, 2, 3, 3}, {1, 2, 3, 4, 5, 6}), 0), (Holders{2, 3, 4, 5, 0, 1}));
  EXPECT_EQ(copy_holders(ranks({1, 1, 1, 2}, {1, 2, 3, 4}), 0), (Holders{3, 3, 3, 0}));
  EXPECT_EQ(copy_holders(ranks({1, 2, 1, 2}, {1, 1, 2, 3}), 0), (Holders{-1, -1, 3, 2}));
  EXPECT_EQ(copy_holders(ranks({1, 1, 1, 1}, {1, 2, 3, 4}), 2), (Holders{2, 3, 0, 1}));
  EXPECT_EQ(copy_holders(ranks({1, 1}, {1, 2}), 4), (Holders{-1, -1}));
}

}  // namespace
}  // namespace sextant
