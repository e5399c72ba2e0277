// Generation from a trained model: every token is the one that the text so far asks for, whether that text was prompted
// or generated; and what ends it.
#include "generate/generator.h"

#include <gtest/gtest.h>

#include "scratch_run.h"

namespace sextant {
namespace {

// One model for all tests of this file.
class Generate : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    scratch_ = std::make_unique<ScratchRun>("generate");
    scratch_->run("run", {"train.steps=20", "train.eval_every=0"});
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

}  // namespace
}  // namespace sextant
