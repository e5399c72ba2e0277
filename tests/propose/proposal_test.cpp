// Proposed configs: they load, they fit, and they follow the text and the memory.
#include "propose/proposal.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <regex>

#include "base/error.h"
#include "base/files.h"
#include "checkout.h"
#include "config/load.h"
#include "models/model.h"
#include "run/fit.h"
#include "run/programs.h"
#include "run/resolve_spec.h"
#include "run/run_target.h"
#include "stories/stories.h"
#include "text/bpe/bpe_trainer.h"

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
    std::string path = (folder_ / fmt::format("{}.txt", bytes)).string();
    std::ofstream file(path);
    for_each_story({.bytes = static_cast<uint64_t>(bytes)}, [&](std::string_view story) { file << story; });
    return path;
  }

  // Of the whole text, by the tokenizer that training makes of it.
  static double tokens_of(const std::string& path, const RunConfig& run) {
    std::string text = read_file(path);
    BpeTrainer trainer(
        {.vocab_size = static_cast<uint32_t>(run.data.tokenizer_vocab), .special_tokens = {"<|endoftext|>"}});
    trainer.feed(text);
    return static_cast<double>(trainer.train().encode(text).size());
  }

  static double passes_of(const RunConfig& run, double tokens) {
    return static_cast<double>(run.train.steps * run.batch.sequences * run.batch.seq) /
           (tokens * (1 - run.data.validation_fraction));
  }

  // A machine of so many operations a second, at any size.
  static double seconds_at(double flops_per_s, const RunConfig& run) {
    return 6.0 * static_cast<double>(parameters_of(run) * run.batch.sequences * run.batch.seq) / flops_per_s;
  }

  static Proposal propose(const std::string& text, const std::string& preset = "", int64_t room = int64_t{8} << 30,
                          double minutes = 0, double flops_per_s = 5e10) {
    return propose_config({.text = text,
                           .model = "",
                           .preset = preset,
                           .device = "cpu",
                           .room = Bytes{room},
                           .minutes = minutes,
                           .step_seconds = [=](const RunConfig& run) { return seconds_at(flops_per_s, run); },
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
  for (int64_t bytes : {20'000, 4'000'000, 8'000'000}) {
    std::string text = text_of(bytes);
    RunConfig run = parse_config(propose(text).toml, "proposed");
    int64_t parameters = parameters_of(run);
    double tokens = tokens_of(text, run);
    EXPECT_GT(parameters, before) << bytes;
    // A token for each parameter; the smallest model is taken where none is small enough.
    if (before > 0) {
      EXPECT_LE(static_cast<double>(parameters), tokens) << bytes;
    }
    before = parameters;
    EXPECT_EQ(run.batch.sequences % run.batch.microbatch, 0);
    EXPECT_NEAR(passes_of(run, tokens), 4, 0.2) << bytes;
  }
}

// Passes are said in the tokens that training will count, not in quarters of bytes.
TEST_F(ProposedConfig, SaysThePassesThatItMakes) {
  std::string text = text_of(1'000'000);
  Proposal proposal = propose(text);
  RunConfig run = parse_config(proposal.toml, "proposed");
  double tokens = tokens_of(text, run);
  ASSERT_GT(std::abs(tokens - 250'000), 10'000) << "four bytes a token would do";
  auto steps = std::ranges::find_if(proposal.reasons, [](const std::string& r) { return r.starts_with("steps: "); });
  ASSERT_NE(steps, proposal.reasons.end());
  size_t at = steps->find("about ");
  ASSERT_NE(at, steps->npos) << *steps;
  EXPECT_NEAR(std::stod(steps->substr(at + 6)), passes_of(run, tokens), 0.15) << *steps;
}

TEST_F(ProposedConfig, FillsTheMinutesThereAre) {
  std::string text = text_of(2'000'000);
  int64_t before = 0;
  for (double minutes : {0.5, 10.0, 300.0}) {
    Proposal proposal = propose(text, "", int64_t{8} << 30, minutes);
    RunConfig run = parse_config(proposal.toml, "proposed");
    double seconds = static_cast<double>(run.train.steps) * seconds_at(5e10, run);
    EXPECT_LE(seconds, 60 * minutes) << minutes;
    if (minutes <= 10) {
      EXPECT_GT(parameters_of(run), before) << minutes;
    }
    EXPECT_GE(parameters_of(run), before) << minutes;  // in the end the text is the limit
    before = parameters_of(run);
    EXPECT_LE(passes_of(run, tokens_of(text, run)), 8.2) << minutes;
    if (minutes <= 10) {
      EXPECT_GT(seconds, 60 * minutes * 0.25) << minutes << "\n" << proposal.toml;
    }
    EXPECT_LE(run.optimizer.warmup, run.train.steps / 10);
    EXPECT_TRUE(std::ranges::any_of(proposal.reasons, [](const std::string& reason) {
      return reason.starts_with("expected loss: about ") && reason.find(" bits per byte") != reason.npos;
    }));
  }
  // A machine of a tenth of the speed.
  RunConfig fast = parse_config(propose(text, "", int64_t{8} << 30, 10).toml, "proposed"),
            slow = parse_config(propose(text, "", int64_t{8} << 30, 10, 5e9).toml, "proposed");
  EXPECT_LT(parameters_of(slow), parameters_of(fast));
}

TEST_F(ProposedConfig, StepsOfAPresetFitTheMinutes) {
  RunConfig run = parse_config(propose(text_of(2'000'000), "pythia-70m", int64_t{32} << 30, 5).toml, "proposed");
  EXPECT_LE(static_cast<double>(run.train.steps) * seconds_at(5e10, run), 300);
  EXPECT_GT(static_cast<double>(run.train.steps) * seconds_at(5e10, run), 100);
}

// Where there is time for a few steps only.
TEST_F(ProposedConfig, ExpectsNoMoreLossThanThatOfAGuess) {
  Proposal proposal = propose(text_of(200'000), "pythia-70m", int64_t{32} << 30, 0.5);
  RunConfig run = parse_config(proposal.toml, "proposed");
  std::smatch nats;
  for (const std::string& reason : proposal.reasons)
    if (std::regex_search(reason, nats, std::regex("([0-9.]+) nats per token"))) {
      EXPECT_LE(std::stod(nats[1]), std::log(resolve_spec(run).vocab) + 0.05) << reason;
      EXPECT_NE(reason.find("no text to read"), std::string::npos) << reason;
      return;
    }
  FAIL() << "no loss is expected";
}

TEST_F(ProposedConfig, APresetHasARowForEachTokenOfItsTokenizer) {
  Proposal proposal = propose(text_of(1'000'000), "gpt2", int64_t{64} << 30);
  RunConfig run = parse_config(proposal.toml, "proposed");
  EXPECT_EQ(resolve_spec(run).vocab, run.data.tokenizer_vocab);
  EXPECT_NE(proposal.toml.find("50,257 rows"), std::string::npos) << proposal.toml;
  EXPECT_TRUE(std::ranges::any_of(proposal.reasons, [](const std::string& reason) {
    return reason.starts_with("model: gpt2, with ") && reason.find("50,257") != reason.npos;
  }));
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
