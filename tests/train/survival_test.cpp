// A run must never do this without a message: continue from NaN, from damaged or mixed files, with another tokenizer or
// other data, on an abandoned branch, or at the same time as another run. On one rank and on a mesh of data and tensor
// parallel ranks.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "ckpt/checkpoints.h"
#include "ckpt/safetensors.h"
#include "scratch_run.h"
#include "train/health/non_finite_streak.h"
#include "train/save/run_lock.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

using Settings = std::vector<std::string>;

// Each test runs on one rank and on dp2·tp2.
class Survival : public testing::TestWithParam<const char*> {
 protected:
  Survival() : scratch_(fmt::format("survive-{}", GetParam())) {}

  // Settings that are given come last, and hold.
  RunConfig config(const Settings& settings) const {
    bool from =
        std::any_of(settings.begin(), settings.end(), [](const std::string& s) { return s.starts_with("model.from"); });
    bool tokenizer = from || std::any_of(settings.begin(), settings.end(),
                                         [](const std::string& s) { return s.starts_with("data.tokenizer="); });
    Settings all{"train.eval_every=0",
                 "optimizer.schedule=constant",
                 "optimizer.lr=0.003",
                 "batch.sequences=4",
                 "batch.seq=32",
                 "train.threads=2",
                 "batch.microbatch=2",
                 "data.stories_bytes=60000",
                 fmt::format("data.cache={}", (scratch_.root() / "cache").string())};
    if (!from)
      for (const char* model : {"model.architecture=llama", "model.layers=2", "model.hidden=64", "model.heads=4",
                                "model.kv_heads=2", "model.ffn=128"})
        all.push_back(model);
    if (!tokenizer) all.push_back("data.tokenizer_vocab=300");
    if (std::string(GetParam()) == "dp2_tp2")
      for (const char* mesh : {"mesh.dp=2", "mesh.tp=2", "batch.microbatch=1"}) all.push_back(mesh);
    all.insert(all.end(), settings.begin(), settings.end());
    return load_config("", all);
  }
  TrainResult run(const Settings& settings, std::string_view out = "run") const {
    return train(config(settings), scratch_.root() / out, cpu_ranks());
  }

  // The message of a run that throws, and its exit code.
  struct Refusal {
    std::string what;
    ExitCode code = ExitCode::finished;
  };
  Refusal refusal(const Settings& settings, std::string_view out = "run") const {
    try {
      run(settings, out);
    } catch (const UserError& error) {
      return {error.what(), error.exit_code()};
    } catch (const RunError& error) {
      return {error.what(), error.exit_code()};
    }
    return {};
  }

  fs::path out(std::string_view name = "run") const { return scratch_.root() / name; }
  fs::path step(int64_t n, std::string_view name = "run") const { return checkpoint_path(out(name), n); }
  std::vector<int64_t> steps(std::string_view name = "run") const {
    std::vector<int64_t> found;
    for (const Checkpoint& checkpoint : list_checkpoints(out(name))) found.push_back(checkpoint.step);
    return found;
  }
  // The checkpoint of step 2, as it is and without its manifest.
  void expect_not_finite() const {
    Refusal from = refusal({"train.steps=4", fmt::format("model.from={}", step(2).string())}, "other");
    EXPECT_NE(from.what.find("damaged"), std::string::npos) << from.what;  // its manifest tells first
    fs::remove(step(2) / "manifest.json");
    from = refusal({"train.steps=4", fmt::format("model.from={}", step(2).string())}, "other");
    EXPECT_EQ(from.code, ExitCode::bad_input) << from.what;
    EXPECT_NE(from.what.find("expected finite weights"), std::string::npos) << from.what;
  }
  std::string metrics(std::string_view name = "run") const { return read_file(out(name) / "metrics.jsonl"); }

  ScratchRun scratch_;
};

using StepNumbers = std::vector<int64_t>;

void overwrite(const fs::path& file, int64_t offset, std::string_view bytes) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(offset);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

void flip_bit(const fs::path& file, int64_t offset) {
  std::string content = read_file(file);
  overwrite(file, offset, std::string(1, static_cast<char>(content[static_cast<size_t>(offset)] ^ 1)));
}

// Puts an element into a tensor of a safetensors file.
void plant(const fs::path& file, const std::string& tensor, float value) {
  int64_t at = -1;
  {
    SafetensorsFile opened(file);
    int64_t data = static_cast<int64_t>(fs::file_size(file)) - opened.tensors().back().end;
    for (const TensorEntry& entry : opened.tensors())
      if (entry.name == tensor) at = data + entry.begin;
  }
  ASSERT_GE(at, 0) << tensor;
  overwrite(file, at, std::string_view(reinterpret_cast<const char*>(&value), sizeof value));
}

TEST_P(Survival, AHugeLearningRateStopsTheRunAndKeepsTheFiniteCheckpoint) {
  run({"train.steps=3", "checkpoint.every=1", "checkpoint.keep=1"});
  EXPECT_EQ(steps(), StepNumbers{3});
  TrainResult result = run({"train.steps=50", "checkpoint.every=1", "checkpoint.keep=1", "optimizer.lr=1e20"});
  EXPECT_EQ(result.outcome, ExitCode::non_finite);
  EXPECT_LT(result.step, 12);
  // The checkpoint before the damage stands, and training resumes from it.
  EXPECT_EQ(steps(), StepNumbers{3});
  EXPECT_EQ(result.checkpoint, step(3));
  std::string lines = metrics();
  EXPECT_EQ(lines.find("null,\"grad_norm\""), std::string::npos) << lines;
  EXPECT_NE(lines.find("\"non_finite\":{"), std::string::npos) << lines;
  EXPECT_NE(lines.find("\"update_skipped\":true"), std::string::npos) << lines;
  TrainResult back = run({"train.steps=6"});
  EXPECT_EQ(back.outcome, ExitCode::finished);
  EXPECT_LT(back.loss, 10);
}

TEST_P(Survival, NonFiniteStepsAreCountedByTheirKey) {
  TrainResult result = run({"train.steps=50", "optimizer.lr=1e20", "train.non_finite_steps=5"});
  EXPECT_EQ(result.outcome, ExitCode::non_finite);
  std::string lines = metrics();
  size_t count = 0;
  for (size_t at = lines.find("non_finite"); at != std::string::npos; at = lines.find("non_finite", at + 1)) ++count;
  EXPECT_EQ(count, 5u) << lines;
}

TEST_P(Survival, ANaNInAWeightIsRefused) {
  for (float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    fs::remove_all(out());
    run({"train.steps=2"});
    plant(step(2) / "model.safetensors", "model.layers.0.mlp.down_proj.weight", bad);
    expect_not_finite();
  }
}

TEST_P(Survival, NonFiniteWeightsAreNotSaved) {
  // One update of this size makes weights that f32 cannot hold.
  Refusal refused = refusal({"train.steps=1", "optimizer.lr=1e38", "optimizer.weight_decay=100"});
  EXPECT_EQ(refused.code, ExitCode::non_finite) << refused.what;
  EXPECT_EQ(steps(), StepNumbers{});
}

TEST_P(Survival, ANegativeSecondMomentIsRefused) {
  run({"train.steps=2"});
  plant(step(2) / "optimizer.safetensors", "adam_v.layers.0.mlp.down.weight", -1e-3f);
  // Without what would tell of the change: a checkpoint as an earlier version wrote it.
  fs::remove(step(2) / "manifest.json");
  auto state = nlohmann::json::parse(read_file(step(2) / "run_state.json"));
  state["format"] = 1;
  write_file_atomically(step(2) / "run_state.json", state.dump());
  Refusal refused = refusal({"train.steps=4"});
  EXPECT_EQ(refused.code, ExitCode::non_finite) << refused.what;
  EXPECT_NE(refused.what.find("never negative"), std::string::npos) << refused.what;
}

TEST_P(Survival, DamageIsSeenAndTheNewestWholeCheckpointIsTaken) {
  struct Case {
    const char* what;
    std::function<void(const fs::path& damaged, const fs::path& other)> damage;
  };
  const Case cases[] = {
      {"bit of the model", [](auto& d, auto&) { flip_bit(d / "model.safetensors", 20000); }},
      {"bit of the optimizer", [](auto& d, auto&) { flip_bit(d / "optimizer.safetensors", 30000); }},
      {"model of another step",
       [](auto& d, auto& o) {
         fs::copy_file(o / "model.safetensors", d / "model.safetensors", fs::copy_options::overwrite_existing);
       }},
      {"run state of another step",
       [](auto& d, auto& o) {
         fs::copy_file(o / "run_state.json", d / "run_state.json", fs::copy_options::overwrite_existing);
       }},
      {"all files of another step",
       [](auto& d, auto& o) { fs::copy(o, d, fs::copy_options::recursive | fs::copy_options::overwrite_existing); }},
      {"a missing file", [](auto& d, auto&) { fs::remove(d / "optimizer.safetensors"); }},
      {"a missing manifest", [](auto& d, auto&) { fs::remove(d / "manifest.json"); }},
      {"a cut manifest", [](auto& d, auto&) { fs::resize_file(d / "manifest.json", 100); }},
      {"a cut file", [](auto& d, auto&) { fs::resize_file(d / "model.safetensors", 5000); }},
  };
  run({"train.steps=4", "checkpoint.every=2"}, "good");
  for (const Case& c : cases) {
    fs::remove_all(out());
    fs::copy(out("good"), out(), fs::copy_options::recursive);
    c.damage(step(4), step(2));
    TrainResult result = run({"train.steps=5"});
    EXPECT_EQ(result.step, 5) << c.what;
    EXPECT_EQ(scratch_.losses("run").size(), 5u) << c.what;
    EXPECT_TRUE(fs::exists(out() / "abandoned-1/step-000004")) << c.what;  // set aside, not lost
    // It went on from step 2: what was damaged was not used.
    EXPECT_EQ(scratch_.losses("run")[2], scratch_.losses("good")[2]) << c.what;
  }
  // A whole checkpoint of another step under this name, which its manifest does not tell.
  fs::remove_all(out());
  fs::copy(out("good"), out(), fs::copy_options::recursive);
  fs::copy(step(2), step(4), fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  EXPECT_NE(refusal({"train.steps=5", fmt::format("checkpoint.resume={}", step(4).string())}).what.find("is of step 2"),
            std::string::npos);
  // Named, it is refused; with nothing whole left, so is the run.
  fs::remove_all(out());
  fs::copy(out("good"), out(), fs::copy_options::recursive);
  for (int n : {2, 4}) flip_bit(step(n) / "model.safetensors", 20000);
  EXPECT_NE(refusal({"train.steps=5", fmt::format("checkpoint.resume={}", step(4).string())})
                .what.find("other content than was written"),
            std::string::npos);
  EXPECT_NE(refusal({"train.steps=5"}).what.find("no checkpoint here is whole"), std::string::npos);
}

TEST_P(Survival, ARollBackIsABranchOfItsOwn) {
  for (int keep : {1, 3}) {
    fs::remove_all(out());
    run({"train.steps=6", "checkpoint.every=2", "checkpoint.keep=0"});
    TrainResult back = run({"train.steps=4", "checkpoint.every=1", fmt::format("checkpoint.keep={}", keep),
                            "optimizer.lr=0.002", fmt::format("checkpoint.resume={}", step(2).string())});
    EXPECT_EQ(back.step, 4);
    EXPECT_EQ(steps(), keep == 1 ? StepNumbers{4} : (StepNumbers{2, 3, 4})) << keep;
    EXPECT_TRUE(fs::exists(out() / "abandoned-1/step-000006/run_state.json"));
    EXPECT_TRUE(fs::exists(out() / "abandoned-1/metrics.jsonl"));
    // The next start goes on with the new branch.
    std::vector<std::string> losses = scratch_.losses("run");
    EXPECT_EQ(run({"train.steps=5", "optimizer.lr=0.002"}).step, 5);
    losses.resize(4);
    std::vector<std::string> after = scratch_.losses("run");
    after.resize(4);
    EXPECT_EQ(after, losses);
  }
}

TEST_P(Survival, ARollBackThatWasKilledIsFinishedByTheNextStart) {
  run({"train.steps=6", "checkpoint.every=2", "checkpoint.keep=0"});
  write_file_atomically(out() / "set-aside.json", R"({"after":2,"to":"abandoned-1"})");
  EXPECT_EQ(run({"train.steps=3"}).step, 3);
  EXPECT_EQ(steps(), (StepNumbers{2, 3}));
  EXPECT_TRUE(fs::exists(out() / "abandoned-1/step-000006"));
  EXPECT_FALSE(fs::exists(out() / "set-aside.json"));
}

TEST_P(Survival, ARefusedResumeChangesNothing) {
  run({"train.steps=2"});
  std::string before = read_file(out() / "config.toml");
  EXPECT_NE(refusal({"train.steps=4", "model.hidden=32"}).what, "");
  EXPECT_NE(refusal({"train.steps=4", "data.stories_bytes=70000"}).what, "");
  EXPECT_EQ(read_file(out() / "config.toml"), before);
}

TEST_P(Survival, EveryConfigIsKeptWithItsFirstStep) {
  run({"train.steps=2", "optimizer.lr=0.001"});
  run({"train.steps=2", "optimizer.lr=0.001"});
  EXPECT_FALSE(fs::exists(out() / "config-000003.toml"));
  run({"train.steps=3", "optimizer.lr=0.002"});
  EXPECT_NE(read_file(out() / "config-000001.toml").find("lr = 0.001"), std::string::npos);
  EXPECT_NE(read_file(out() / "config-000003.toml").find("lr = 0.002"), std::string::npos);
  EXPECT_EQ(read_file(out() / "config.toml"), read_file(out() / "config-000003.toml"));
}

TEST_P(Survival, OtherDataIsRefusedUnlessAccepted) {
  run({"train.steps=2"});
  // The same paths and sizes, another text: an equal tokenizer, other ids.
  std::string tokenizer = (step(2) / "tokenizer.json").string();
  write_file_atomically(scratch_.root() / "a.txt", std::string(20000, 'a') + " one two three");
  Settings changed{"train.steps=4", fmt::format("data.tokenizer={}", tokenizer),
                   fmt::format("data.train={}", (scratch_.root() / "a.txt").string())};
  Refusal refused = refusal(changed);
  EXPECT_EQ(refused.code, ExitCode::bad_input);
  EXPECT_NE(refused.what.find("the data of this run is not what"), std::string::npos) << refused.what;
  changed.push_back("checkpoint.accept_changed=data");
  EXPECT_EQ(run(changed).step, 4);
}

TEST_P(Survival, AnotherTokenizerOfTheSameSizeIsRefusedUnlessAccepted) {
  run({"train.steps=2"});
  run({"train.steps=2", "data.stories_bytes=30000"}, "other");
  ASSERT_NE(read_file(step(2) / "tokenizer.json"), read_file(step(2, "other") / "tokenizer.json"));
  Settings changed{"train.steps=4", fmt::format("data.tokenizer={}", (step(2, "other") / "tokenizer.json").string())};
  Refusal refused = refusal(changed);
  EXPECT_EQ(refused.code, ExitCode::bad_input);
  EXPECT_NE(refused.what.find("the tokenizer of this run is not what"), std::string::npos) << refused.what;
  changed.push_back("checkpoint.accept_changed=data");
  EXPECT_NE(refusal(changed).what.find("the tokenizer of this run is not what"), std::string::npos);
  changed.push_back("checkpoint.accept_changed=tokenizer");
  EXPECT_EQ(run(changed).step, 4);
}

TEST_P(Survival, PretrainedWeightsKeepTheirTokenizer) {
  run({"train.steps=2"});
  run({"train.steps=2", "data.stories_bytes=30000"}, "other");
  Settings from{"train.steps=1", fmt::format("model.from={}", step(2).string())};
  EXPECT_EQ(refusal(from, "same").what, "");
  Settings another = from;
  another.push_back(fmt::format("data.tokenizer={}", (step(2, "other") / "tokenizer.json").string()));
  EXPECT_NE(refusal(another, "second").what.find("is not the tokenizer of"), std::string::npos);
  fs::remove(step(2) / "tokenizer.json");
  fs::remove(step(2) / "manifest.json");
  EXPECT_NE(refusal(from, "third").what.find("has no tokenizer.json"), std::string::npos);
  another.push_back("model.other_tokenizer=true");
  EXPECT_EQ(refusal(another, "fourth").what, "");
}

TEST_P(Survival, AModelWhoseTokenizerCannotBeReadTrainsOnTokenFiles) {
  run({"train.steps=2"});
  write_file_atomically(step(2) / "tokenizer.json", R"({"model":{"type":"Unigram","vocab":[]}})");
  fs::remove(step(2) / "manifest.json");
  std::string tokens(4000, '\0');
  for (size_t i = 0; i < tokens.size(); i += 2) tokens[i] = static_cast<char>(i % 200);
  write_file_atomically(scratch_.root() / "tokens.u16", tokens);
  Settings from{"train.steps=1", fmt::format("model.from={}", step(2).string()),
                fmt::format("data.train={}", (scratch_.root() / "tokens.u16").string())};
  EXPECT_EQ(refusal(from, "tokens").what, "");
}

TEST_P(Survival, ASecondRunInTheSamePlaceIsRefusedByName) {
  fs::create_directories(out());
  RunLock held(out());
  Refusal refused = refusal({"train.steps=1"});
  EXPECT_EQ(refused.code, ExitCode::bad_input);
  EXPECT_NE(refused.what.find(fmt::format("another run is writing here: process {}", ::getpid())), std::string::npos)
      << refused.what;
}

TEST(RunLockFile, IsNoLinkAndIsNotInherited) {
  ScratchRun scratch("run-lock");
  const fs::path& out = scratch.root();
  {
    // The file that a link of this name points to is not ours to truncate.
    write_file_atomically(out / "thesis", "mine");
    fs::create_symlink(out / "thesis", out / RunLock::kRunFile);
    EXPECT_THROW(RunLock{out}, std::runtime_error);
    EXPECT_EQ(read_file(out / "thesis"), "mine");
    fs::remove(out / RunLock::kRunFile);
  }
  RunLock held(out);
  ASSERT_TRUE(held.is_held());
  EXPECT_EQ(read_file(out / RunLock::kRunFile).rfind(fmt::format("process {} on ", ::getpid()), 0), 0u);
  // A program that is started meanwhile, a loader or a shell, must not hold it when the run has ended.
  int inherited = 0;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (fs::read_symlink(entry.path(), gone) == fs::canonical(out / RunLock::kRunFile))
      inherited += (::fcntl(std::stoi(entry.path().filename().string()), F_GETFD) & FD_CLOEXEC) == 0 ? 1 : 0;
  }
  EXPECT_EQ(inherited, 0);
  // The supervisor's is another; a second of the same kind is refused.
  RunLock supervisor(out, RunLock::kSupervisorFile);
  EXPECT_TRUE(supervisor.is_held());
  EXPECT_THROW(RunLock(out, RunLock::kSupervisorFile), UserError);
}

TEST_P(Survival, NothingToDoAfterAChangeIsNoSuccess) {
  run({"train.steps=2"});
  EXPECT_EQ(run({"train.steps=2"}).outcome, ExitCode::finished);
  Refusal refused = refusal({"train.steps=2", "optimizer.lr=0.0005"});
  EXPECT_EQ(refused.code, ExitCode::bad_input);
  EXPECT_NE(refused.what.find("optimizer.lr"), std::string::npos) << refused.what;
  EXPECT_EQ(run({"train.steps=2", "train.log_every=3"}).outcome, ExitCode::finished);
}

// The target of a link named like a checkpoint stays as it is.
TEST_P(Survival, LinksInsideTheRunAreNotFollowed) {
  fs::create_directories(scratch_.root() / "thesis");
  write_file_atomically(scratch_.root() / "thesis/text", "mine");
  fs::create_directories(out());
  fs::create_directory_symlink(scratch_.root() / "thesis", step(2));
  Refusal refused = refusal({"train.steps=4", "checkpoint.every=2"});
  EXPECT_NE(refused.what.find("symbolic link"), std::string::npos) << refused.what;
  EXPECT_EQ(read_file(scratch_.root() / "thesis/text"), "mine");
  EXPECT_EQ(std::distance(fs::directory_iterator(scratch_.root() / "thesis"), {}), 1);
}

// A file that stands where a checkpoint should go makes that save fail, as a full disk would.
TEST_P(Survival, AFailedPeriodicSaveDoesNotEndTheRun) {
  fs::create_directories(out());
  write_file_atomically(out() / "step-000004", "in the way");
  EXPECT_EQ(run({"train.steps=6", "checkpoint.every=2"}).outcome, ExitCode::finished);
  EXPECT_EQ(steps(), (StepNumbers{2, 6}));
}

TEST_P(Survival, AFailedSaveEndsTheRunWhenItIsTheLastOrNothingStands) {
  for (int n : {2, 6}) {
    fs::remove_all(out());
    fs::create_directories(out());
    write_file_atomically(step(n), "in the way");
    Refusal refused = refusal({"train.steps=6", "checkpoint.every=2"});
    EXPECT_EQ(refused.code, ExitCode::run_failed) << n;
    EXPECT_NE(refused.what.find("the checkpoint could not be written"), std::string::npos) << refused.what;
    EXPECT_EQ(steps(), n == 2 ? StepNumbers{} : (StepNumbers{2, 4}));
  }
}

TEST_P(Survival, LeftoversGoAndOneCheckpointTooManyIsPruned) {
  run({"train.steps=6", "checkpoint.every=2", "checkpoint.keep=0"});
  write_file_atomically(out() / "config.toml.tmp-1", "half");
  write_file_atomically(out() / "metrics.jsonl.tmp-12345-0123456789abcdef", "half");
  fs::create_directories(out() / "step-000008.tmp-999999/staged");
  run({"train.steps=7", "checkpoint.keep=2"});
  EXPECT_EQ(steps(), (StepNumbers{6, 7}));
  for (const auto& entry : fs::directory_iterator(out()))
    EXPECT_EQ(entry.path().string().find(".tmp-"), std::string::npos) << entry.path();
}

TEST_P(Survival, FilesFollowTheUmask) {
  mode_t before = ::umask(0002);
  run({"train.steps=1"});
  ::umask(before);
  for (const char* name : {"config.toml", "metrics.jsonl", "step-000001/model.safetensors", "step-000001/config.json",
                           "step-000001/run_state.json"}) {
    struct stat info {};
    ASSERT_EQ(::stat((out() / name).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0664u) << name;
  }
}

TEST(NonFinite, OnlyStepsInARowCount) {
  StepMetrics good, bad, steep;
  bad.values.set(number::loss, std::numeric_limits<double>::quiet_NaN());
  steep.values.set(number::grad_norm, std::numeric_limits<double>::infinity());
  NonFiniteStreak streak(2);
  for (const StepMetrics& m : {bad, good, steep, good, bad}) {
    streak.note(m);
    EXPECT_FALSE(streak.is_over_limit());
  }
  streak.note(steep);
  EXPECT_TRUE(streak.is_over_limit());
  EXPECT_EQ(streak.steps(), 2);
}

TEST(NonFinite, AScaleThatCanGetSmallerIsNoFaultOfTheRunAlsoAfterARewind) {
  StepMetrics overflow;
  overflow.values.set(number::grad_norm, std::numeric_limits<double>::infinity());
  overflow.values.set(number::loss_scale, 2.0);
  NonFiniteStreak streak(2, 1);
  streak.note(overflow);
  EXPECT_EQ(streak.steps(), 0);
  streak.reset();
  overflow.values.set(number::loss_scale, 1.0);
  streak.note(overflow);
  EXPECT_EQ(streak.steps(), 1) << "the least scale there is";
}

INSTANTIATE_TEST_SUITE_P(OnOneRankAndAMesh, Survival, testing::Values("alone", "dp2_tp2"),
                         [](const testing::TestParamInfo<const char*>& info) { return std::string(info.param); });

}  // namespace
}  // namespace sextant
