// Proposed configs: they load, they fit, and they follow the text and the memory.
#include "propose/proposal.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "checkout.h"
#include "config/load.h"
#include "models/model.h"
#include "run/fit.h"
#include "run/programs.h"
#include "run/resolve_spec.h"
#include "run/run_target.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

class ProposedConfig : public testing::Test {
 protected:
  ProposedConfig() : folder_(fs::temp_directory_path() / fmt::format("sextant-propose-{}", ::getpid())) {
    fs::create_directories(folder_);
  }
  ~ProposedConfig() override { fs::remove_all(folder_); }

  std::string text_of(int64_t bytes) const {
    std::string path = (folder_ / fmt::format("{}.txt", bytes)).string(), line = "The fox went home before the rain.\n";
    std::ofstream file(path);
    for (int64_t done = 0; done < bytes; done += static_cast<int64_t>(line.size())) file << line;
    return path;
  }

  static Proposal propose(const std::string& text, const std::string& preset = "", int64_t room = int64_t{8} << 30) {
    return propose_config({.text = text,
                           .model = "",
                           .preset = preset,
                           .device = "cpu",
                           .room = Bytes{room},
                           .target = [](const RunConfig& run) { return cpu_target_of(run, 1, 2); }});
  }

  static Bytes arena_of(const RunConfig& run) {
    return largest_arena(lower_run(run, resolve_spec(run), cpu_target_of(run, 1, 2)).programs);
  }

  static int64_t parameters_of(const RunConfig& run) {
    return parameter_count(build_model(resolve_spec(run), {.seq = run.batch.seq}, single_rank_mesh()));
  }

  fs::path folder_;
};

TEST_F(ProposedConfig, TheModelGrowsWithTheText) {
  int64_t before = 0;
  for (int64_t bytes : {20'000, 2'000'000, 12'000'000}) {
    RunConfig run = parse_config(propose(text_of(bytes)).toml, "proposed");
    int64_t parameters = parameters_of(run);
    EXPECT_GT(parameters, before) << bytes;
    // A token of four bytes for each parameter; the smallest model is taken where none is small enough.
    if (before > 0) {
      EXPECT_LE(parameters * 4, bytes) << bytes;
    }
    before = parameters;
    EXPECT_EQ(run.batch.sequences % run.batch.microbatch, 0);
    double passes =
        static_cast<double>(run.train.steps * run.batch.sequences * run.batch.seq) / (static_cast<double>(bytes) / 4);
    EXPECT_NEAR(passes, 4, 0.5) << bytes;
  }
}

TEST_F(ProposedConfig, FitsTheMemoryThereIs) {
  RunConfig ample = parse_config(propose("", "pythia-70m", int64_t{64} << 30).toml, "proposed");
  int64_t need = arena_of(ample).n;
  RunConfig tight = parse_config(propose("", "pythia-70m", need * 6 / 5).toml, "proposed");
  EXPECT_LE(static_cast<double>(arena_of(tight).n), 0.8 * 1.2 * static_cast<double>(need));
  EXPECT_LT(tight.batch.microbatch, ample.batch.microbatch);
  EXPECT_EQ(tight.batch.sequences, ample.batch.sequences);
  EXPECT_THROW(propose("", "pythia-70m", int64_t{100} << 20), DoesNotFit);
}

TEST_F(ProposedConfig, SaysWhyAtEveryChoice) {
  Proposal proposal = propose(text_of(500'000));
  for (const char* what : {"device: ", "data: ", "tokenizer: ", "model: ", "steps: ", "memory: ", "learning rate: "})
    EXPECT_TRUE(std::any_of(proposal.reasons.begin(), proposal.reasons.end(), [&](const std::string& reason) {
      return reason.starts_with(what);
    })) << what;
  EXPECT_TRUE(proposal.toml.starts_with("# Trains a new model on "));
}

// Its config.json says that it sees 64 positions, and there are no weights: only sizes are read.
TEST_F(ProposedConfig, SequencesAreNoLongerThanTheModelSees) {
  fs::copy_file(fs::path(checkout::kSources) / "tests/fixtures/models/llama/config.json", folder_ / "config.json");
  RunConfig run =
      parse_config(propose_config({.text = text_of(500'000),
                                   .model = folder_.string(),
                                   .preset = "",
                                   .device = "cpu",
                                   .room = Bytes{int64_t{8} << 30},
                                   .target = [](const RunConfig& config) { return cpu_target_of(config, 1, 2); }})
                       .toml,
                   "proposed");
  EXPECT_EQ(run.batch.seq, 64);
  EXPECT_EQ(run.model.from, folder_.string());
}

TEST_F(ProposedConfig, TooLittleTextIsRefused) {
  EXPECT_THROW(propose(text_of(500)), UserError);
}

}  // namespace
}  // namespace sextant
