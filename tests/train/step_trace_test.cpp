// The documents that `data trace` reports for a step are those that the executor reads: compared with the original
// text, document by document.
#include "train/data/step_trace.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <map>

#include "base/error.h"
#include "data/token_writer.h"
#include "forwarding_executor.h"
#include "run/resolve_spec.h"
#include "scratch_run.h"
#include "train/save/run_history.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

using TokensByMicrobatch = std::map<int, std::vector<int32_t>>;

// A Bound that notes the tokens it is given for training, step by step.
class TokenNotingBound final : public ForwardingBound {
 public:
  TokenNotingBound(std::unique_ptr<Bound> bound, std::vector<TokensByMicrobatch>& steps)
      : ForwardingBound(std::move(bound)), steps_(steps) {}
  void write(const Value& value, std::span<const std::byte> from, int64_t offset, int microbatch) override {
    ForwardingBound::write(value, from, offset, microbatch);
    if (value.path == "step") steps_.emplace_back();
    if (value.path != "tokens" || !program().find("step")) return;  // that of evaluations has no step
    std::vector<int32_t>& tokens = steps_.back()[microbatch];
    tokens.resize(from.size() / sizeof(int32_t));
    std::memcpy(tokens.data(), from.data(), from.size());
  }

 private:
  std::vector<TokensByMicrobatch>& steps_;
};

// The tokens of each step that is run, samples one behind the other.
std::vector<std::vector<int32_t>> fed_tokens(const RunConfig& run, const fs::path& out) {
  std::vector<TokensByMicrobatch> noted;
  train(run, out, [&](const RankContext& context, int threads) {
    return std::make_unique<ForwardingExecutor>(make_cpu_executor(threads, context), [&](std::unique_ptr<Bound> bound) {
      return std::make_unique<TokenNotingBound>(std::move(bound), noted);
    });
  });
  std::vector<std::vector<int32_t>> steps;
  for (const TokensByMicrobatch& step : noted) {
    std::vector<int32_t>& all = steps.emplace_back();
    for (const auto& [microbatch, tokens] : step) all.insert(all.end(), tokens.begin(), tokens.end());
  }
  return steps;
}

// Lines of two files, some of them blank or of no use; by file and line.
std::map<std::pair<std::string, int64_t>, std::string> write_corpus(const fs::path& folder) {
  std::map<std::pair<std::string, int64_t>, std::string> documents;
  for (const char* name : {"a.jsonl", "b.jsonl"}) {
    std::string text;
    for (int line = 1; line <= 90; ++line) {
      if (line % 9 == 0) {
        text += line % 2 == 0 ? "\n" : "{\"bad\": 1}\n";
        continue;
      }
      std::string document = fmt::format("{}{} ", name[0], line);
      for (int i = 0; i < line % 5; ++i) document += fmt::format("word{} of {} ", i, line);
      documents[{(folder / name).string(), line}] = document;
      text += fmt::format("{{\"text\": \"{}\"}}\n", document);
    }
    std::ofstream(folder / name) << text;
  }
  return documents;
}

Dataset dataset_at(const StepOfRun& step) {
  ThreadTeam team(1);
  return open_dataset(step.run, resolve_spec(step.run), team, [](std::string_view) {});
}

TEST(StepTrace, NamesTheTextThatTheExecutorWasFed) {
  ScratchRun scratch("trace");
  auto documents = write_corpus(scratch.root());
  auto settings = [&](std::vector<std::string> more) {
    more.insert(more.end(),
                {fmt::format("data.train=[\"{0}/a.jsonl\", \"{0}/b.jsonl\"]", scratch.root().string()),
                 "data.tokenizer_vocab=300", "data.on_error=skip", "data.validation_fraction=0.1", "batch.seq=16",
                 "train.eval_every=2", "checkpoint.every=1", "checkpoint.keep=10", "optimizer.warmup=0"});
    return scratch.config("tiny-llama.toml", more);
  };
  fs::path out = scratch.root() / "run";
  auto first = fed_tokens(settings({"train.steps=4", "batch.sequences=6", "batch.microbatch=2"}), out);
  // Goes on from step 2 with smaller batches: steps 3 and 4 are others than before.
  auto second = fed_tokens(settings({"train.steps=5", "batch.sequences=2", "batch.microbatch=1",
                                     fmt::format("checkpoint.resume={}", (out / "step-000002").string())}),
                           out);
  ASSERT_EQ(first.size(), 4u);
  ASSERT_EQ(second.size(), 3u);
  for (int64_t number = 1; number <= 5; ++number) {
    StepOfRun step = find_step(out, number);
    EXPECT_EQ(step.first_sample, number <= 2 ? (number - 1) * 6 : 12 + (number - 3) * 2) << number;
    Dataset dataset = dataset_at(step);
    std::vector<int32_t> expected;
    int64_t seq = step.run.batch.seq;
    for (const TracedSample& sample : trace_samples(dataset, step.first_sample, step.run.batch.sequences)) {
      std::vector<int32_t> tokens;
      for (const TracedPiece& piece : sample.pieces) {
        ASSERT_TRUE(piece.origin);
        auto found = documents.find({piece.origin->file, piece.origin->record});
        ASSERT_NE(found, documents.end()) << piece.origin->file << ":" << piece.origin->record;
        std::vector<uint32_t> whole = dataset.tokenizer->encode(found->second);
        whole.push_back(*dataset.tokenizer->eos_id());
        ASSERT_LE(piece.offset + piece.tokens, std::ssize(whole));
        tokens.insert(tokens.end(), whole.begin() + piece.offset, whole.begin() + piece.offset + piece.tokens);
      }
      ASSERT_EQ(std::ssize(tokens), seq + 1);
      expected.insert(expected.end(), tokens.begin(), tokens.end() - 1);
    }
    EXPECT_EQ(number <= 2 ? first[static_cast<size_t>(number - 1)] : second[static_cast<size_t>(number - 3)], expected)
        << "step " << number;
  }
  for (int64_t none : {int64_t{0}, int64_t{-1}, int64_t{6}}) EXPECT_THROW(find_step(out, none), UserError) << none;
  EXPECT_THROW(find_step(scratch.root() / "nowhere", 1), UserError);
}

TEST(StepTrace, TokenFilesAreNamedByDocumentWhereItIsKnown) {
  ScratchRun scratch("trace-tokens");
  for (auto [name, kind] : {std::pair{"pair", TokenKind::megatron}, std::pair{"flat.u16", TokenKind::flat}}) {
    TokenWriter writer(scratch.root() / name, {.kind = kind, .type = TokenType::u16, .end_of_text = 60});
    for (int32_t d = 0; d < 50; ++d) writer.append_document(std::vector<int32_t>(static_cast<size_t>(d % 9 + 1), d));
    writer.finish();
  }
  auto traced = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"model.vocab=64", "batch.seq=16", "data.validation_fraction=0.2"});
    RunConfig run = scratch.config("tiny-llama.toml", more);
    ThreadTeam team(1);
    Dataset dataset = open_dataset(run, resolve_spec(run), team, [](std::string_view) {});
    std::vector<TracedSample> samples = trace_samples(dataset, 3, 4);
    for (const TracedSample& sample : samples) {
      std::vector<int32_t> tokens(16), targets(16), named;
      dataset.train.fill(sample.sample, 1, tokens, targets);
      for (const TracedPiece& piece : sample.pieces) {
        EXPECT_FALSE(piece.origin);
        if (!piece.document) continue;
        // Token i of document d is d, or the end token where the document ends.
        for (int64_t i = piece.offset; i < piece.offset + piece.tokens; ++i)
          named.push_back(i == *piece.document % 9 + 1 ? 60 : static_cast<int32_t>(*piece.document));
      }
      if (named.empty()) continue;
      named.pop_back();
      EXPECT_EQ(named, tokens) << sample.sample;
    }
    return samples;
  };
  auto pair = traced({fmt::format("data.train={}/pair.idx", scratch.root().string())});
  auto flat = traced({fmt::format("data.train={}/flat.u16", scratch.root().string()), "data.format=tokens-u16",
                      "data.end_of_text=60"});
  ASSERT_EQ(pair.size(), flat.size());
  for (size_t i = 0; i < pair.size(); ++i) EXPECT_EQ(pair[i].pieces, flat[i].pieces);
  auto unknown = traced({fmt::format("data.train={}/flat.u16", scratch.root().string())});
  for (const TracedSample& sample : unknown) {
    ASSERT_EQ(sample.pieces.size(), 1u);
    EXPECT_FALSE(sample.pieces[0].document);
    EXPECT_EQ(sample.pieces[0].tokens, 17);
    EXPECT_TRUE(sample.file.ends_with("flat.u16"));
  }
}

}  // namespace
}  // namespace sextant
