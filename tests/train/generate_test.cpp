// Generation from a trained model: every token is the one that the text so far asks for, whether that text was prompted
// or generated; and what ends it.
#include "forwarding_executor.h"
#include "generate/generator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "scratch_run.h"

namespace sextant {
namespace {

// One model for all tests of this file.
class Generate : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    scratch_ = std::make_unique<ScratchRun>("generate");
    scratch_->run("run", {"train.steps=20", "train.eval_every=0", "batch.seq=96", "model.max_seq=96"});
    executor_ = make_cpu_executor(1, {});
  }
  static void TearDownTestSuite() { executor_.reset(), scratch_.reset(); }

  static Generator generator(int64_t context = 0) {
    return {scratch_->root() / "run" / "step-000020", *executor_, context};
  }

  struct Written {
    std::vector<uint32_t> tokens;
    StopReason reason;
  };
  static Written write(Generator& generator, std::string_view prompt, const GenerateOptions& options) {
    Written written;
    written.reason = generator.generate(prompt, options, [&](uint32_t token) { written.tokens.push_back(token); });
    return written;
  }

  static std::unique_ptr<ScratchRun> scratch_;
  static std::unique_ptr<Executor> executor_;
};

std::unique_ptr<ScratchRun> Generate::scratch_;
std::unique_ptr<Executor> Generate::executor_;

// How many tokens a Program is given, and from which position on.
struct Fed {
  int64_t start = 0, tokens = 0;
  bool operator==(const Fed&) const = default;
};

class FeedNotingBound final : public ForwardingBound {
 public:
  FeedNotingBound(std::unique_ptr<Bound> bound, std::vector<Fed>& runs)
      : ForwardingBound(std::move(bound)), runs_(runs) {}
  void write(const Value& value, std::span<const std::byte> from, int64_t offset, int microbatch) override {
    if (value.path == "tokens") tokens_ = static_cast<int64_t>(from.size() / sizeof(int32_t));
    if (value.path == "start") runs_.push_back({*reinterpret_cast<const int32_t*>(from.data()), tokens_});
    ForwardingBound::write(value, from, offset, microbatch);
  }

 private:
  std::vector<Fed>& runs_;
  int64_t tokens_ = 0;
};

class LargeHeadBound final : public ForwardingBound {
 public:
  using ForwardingBound::ForwardingBound;
  void write(const Value& value, std::span<const std::byte> from, int64_t offset, int microbatch) override {
    if (value.path != "head.weight") return ForwardingBound::write(value, from, offset, microbatch);
    std::vector<float> large(from.size() / sizeof(float));
    std::memcpy(large.data(), from.data(), from.size());
    for (float& weight : large) weight = std::copysign(3e38f, weight);
    ForwardingBound::write(value, std::as_bytes(std::span(large)), offset, microbatch);
  }
};

const std::string kPrompt = "One day the baker and the old farmer";
const GenerateOptions kLikeliest{.sampling = {.temperature = 0}, .max_tokens = 24, .stop_tokens = {}};

TEST_F(Generate, WhatWasGeneratedCountsLikeWhatWasPrompted) {
  Generator model = generator();
  std::vector<uint32_t> tokens = write(model, kPrompt, kLikeliest).tokens,
                        prompt = model.tokenizer().encode_with_special(kPrompt);
  ASSERT_EQ(tokens.size(), 24u);
  int compared = 0;
  for (size_t made = 1; made < tokens.size(); ++made) {
    std::span<const uint32_t> so_far(tokens.data(), made);
    std::string text = kPrompt + model.tokenizer().decode(so_far);
    std::vector<uint32_t> ids = prompt;
    ids.insert(ids.end(), so_far.begin(), so_far.end());
    if (model.tokenizer().encode_with_special(text) != ids) continue;  // the same text in other tokens
    EXPECT_EQ(write(model, text, kLikeliest).tokens.front(), tokens[made]) << "after " << made << " tokens";
    ++compared;
  }
  EXPECT_GE(compared, 5);
}

TEST_F(Generate, EndsAtAStopTokenOrWhenThereIsNoRoom) {
  Generator model = generator();
  Written all = write(model, kPrompt, kLikeliest);
  EXPECT_EQ(all.reason, StopReason::max_tokens);
  GenerateOptions stopping = kLikeliest;
  stopping.stop_tokens = {all.tokens[7]};
  Written stopped = write(model, kPrompt, stopping);
  auto first = std::find(all.tokens.begin(), all.tokens.end(), all.tokens[7]);
  EXPECT_EQ(stopped.reason, StopReason::stop_token);
  EXPECT_EQ(stopped.tokens, std::vector<uint32_t>(all.tokens.begin(), first));

  auto prompt = static_cast<int64_t>(model.tokenizer().encode_with_special(kPrompt).size());
  Generator small = generator(prompt + 3);
  Written full = write(small, kPrompt, kLikeliest);
  EXPECT_EQ(full.reason, StopReason::context_full);
  EXPECT_EQ(full.tokens,
            std::vector<uint32_t>(all.tokens.begin(),
                                  all.tokens.begin() + 4));  // three more positions, and the token they ask for
}

TEST_F(Generate, StreamsOfOneSeedDiffer) {
  Generator model = generator();
  GenerateOptions options{.sampling = {.temperature = 1}, .max_tokens = 24, .seed = 5, .stop_tokens = {}};
  std::vector<uint32_t> one = write(model, kPrompt, options).tokens;
  EXPECT_EQ(write(model, kPrompt, options).tokens, one);
  options.stream = 1;
  EXPECT_NE(write(model, kPrompt, options).tokens, one);
}

// A block of 64, the rest of the prompt and what is generated one by one, each at the position behind the one before.
TEST_F(Generate, EveryTokenStandsAtItsPosition) {
  std::vector<Fed> runs;
  ForwardingExecutor executor(make_cpu_executor(1, {}), [&](std::unique_ptr<Bound> bound) {
    return std::make_unique<FeedNotingBound>(std::move(bound), runs);
  });
  Generator model(scratch_->root() / "run" / "step-000020", executor, 0);
  std::string prompt = kPrompt;
  while (model.tokenizer().encode_with_special(prompt).size() < 70) prompt += " and the";
  auto length = static_cast<int64_t>(model.tokenizer().encode_with_special(prompt).size());
  GenerateOptions options = kLikeliest;
  options.max_tokens = 6;
  ASSERT_LT(length + options.max_tokens, model.spec().max_seq);
  ASSERT_EQ(write(model, prompt, options).tokens.size(), 6u);
  std::vector<Fed> expected{{0, 64}};
  for (int64_t at = 64; at < length + options.max_tokens; ++at) expected.push_back({at, 1});
  EXPECT_TRUE(runs == expected);
  ASSERT_EQ(runs.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(runs[i].start, expected[i].start) << "run " << i;
}

// Finite weights whose logits are not: a head so large that its GEMM overflows.
TEST_F(Generate, LogitsThatAreNotFiniteEndIt) {
  ForwardingExecutor executor(make_cpu_executor(1, {}), [&](std::unique_ptr<Bound> bound) {
    return std::make_unique<LargeHeadBound>(std::move(bound));
  });
  Generator model(scratch_->root() / "run" / "step-000020", executor, 0);
  int taken = 0;
  try {
    model.generate(kPrompt, kLikeliest, [&](uint32_t) { ++taken; });
    FAIL() << "no error";
  } catch (const RunError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::non_finite);
    EXPECT_NE(std::string(error.what()).find("the logit of token"), std::string::npos) << error.what();
  }
  EXPECT_EQ(taken, 0);
}

}  // namespace
}  // namespace sextant
