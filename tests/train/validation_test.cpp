// Data that is held out of the training data, that it stays so when a run is resumed, and the figures reported on it.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "ckpt/checkpoints.h"
#include "run/resolve_spec.h"
#include "scratch_run.h"
#include "train/data/dataset.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

// Documents that name themselves: "w17 w17 … w17".
fs::path numbered_documents(const ScratchRun& scratch, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    for (int word = 0; word < 12; ++word) text += fmt::format("w{} ", i);
    text += "<|endoftext|>";
  }
  fs::path path = scratch.root() / "text.txt";
  std::ofstream(path) << text;
  return path;
}

std::vector<std::string> on_text(const ScratchRun& scratch, std::initializer_list<std::string> more) {
  std::vector<std::string> all{fmt::format("data.train={}", (scratch.root() / "text.txt").string()),
                               "data.tokenizer_vocab=300",
                               "data.validation_fraction=0.1",
                               "batch.seq=16",
                               "batch.sequences=4",
                               "train.steps=2",
                               "train.eval_every=2",
                               "checkpoint.every=1",
                               "optimizer.warmup=0",
                               "optimizer.schedule=constant"};  // the same however many steps follow
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

// The documents of which whole words are in what a sampler draws in an epoch.
std::set<std::string> words_in(const BatchSampler& sampler, const Tokenizer& tokenizer) {
  std::vector<int32_t> tokens(static_cast<size_t>(sampler.seq())), targets(tokens.size());
  std::set<std::string> words;
  for (int64_t k = 0; k < sampler.samples(0); ++k) {
    sampler.fill(k, 1, tokens, targets);
    std::vector<uint32_t> ids(tokens.begin(), tokens.end());
    std::string text = tokenizer.decode(ids, Specials::skip);
    for (size_t at = text.find(' '), next; (next = text.find(' ', at + 1)) != std::string::npos; at = next)
      words.insert(text.substr(at + 1, next - at - 1));
  }
  return words;
}

Dataset dataset_of(const RunConfig& run) {
  ThreadTeam team(1);
  return open_dataset(run, resolve_spec(run), team, [](std::string_view) {});
}

TEST(Validation, DocumentsOfTextAreHeldOutWhole) {
  ScratchRun scratch("held-out");
  numbered_documents(scratch, 200);
  RunConfig run = scratch.config("tiny-llama.toml", on_text(scratch, {}));
  Dataset data = dataset_of(run);
  std::set<std::string> trained = words_in(data.train, *data.tokenizer),
                        held_out = words_in(*data.validation, *data.tokenizer);
  // Of a document at the cut of a sample only part of a word may be seen; so "w17" of "w170" is no document.
  int both = 0;
  for (const std::string& word : held_out) both += static_cast<int>(trained.contains(word));
  EXPECT_LE(both, 2);
  EXPECT_NEAR(static_cast<double>(held_out.size()), 20, 2);
  EXPECT_GT(trained.size(), 175u);

  run.train.seed += 1;
  Dataset other = dataset_of(run);
  EXPECT_NE(words_in(*other.validation, *other.tokenizer), held_out);
  run.data.validation_split = ValidationSplit::tail;
  Dataset tail = dataset_of(run);
  for (const std::string& word : words_in(*tail.validation, *tail.tokenizer)) EXPECT_GE(word, "w17") << word;
}

TEST(Validation, FilesWithoutDocumentEndsKeepTheTailAndSaySo) {
  ScratchRun scratch("no-ends");
  std::string ids;
  for (int i = 0; i < 4000; ++i) ids += std::string{static_cast<char>(i % 50), '\0'};
  std::ofstream(scratch.root() / "x.u16", std::ios::binary) << ids;
  auto lines = [&](std::initializer_list<std::string> more) {
    std::vector<std::string> settings{fmt::format("data.train={}", (scratch.root() / "x.u16").string()),
                                      "model.vocab=64", "batch.seq=16", "data.format=tokens-u16"};
    settings.insert(settings.end(), more.begin(), more.end());
    RunConfig run = scratch.config("tiny-llama.toml", settings);
    ThreadTeam team(1);
    std::string said;
    Dataset data = open_dataset(run, resolve_spec(run), team, [&](std::string_view line) { said += line; });
    EXPECT_FALSE(data.validation_bytes_per_token);  // there is no tokenizer
    return std::pair(said, data.train.source(0).tokens.ranges().size());
  };
  auto [said, ranges] = lines({});
  EXPECT_NE(said.find("where documents end is unknown"), std::string::npos) << said;
  EXPECT_NE(said.find("the last 5 % of its tokens"), std::string::npos) << said;
  EXPECT_EQ(ranges, 1u);
  EXPECT_EQ(lines({"data.validation_split=tail"}).first, "");
  auto [quiet, pieces] = lines({"data.end_of_text=49"});  // 80 documents, four of them held out
  EXPECT_EQ(quiet, "");
  EXPECT_GT(pieces, 2u);
  EXPECT_NE(lines({"data.end_of_text=63"}).first.find("it is one document"), std::string::npos);
}

TEST(Validation, AResumedRunKeepsItsSplit) {
  ScratchRun scratch("resumed-split");
  numbered_documents(scratch, 120);
  scratch.run("tail", on_text(scratch, {"data.validation_split=tail", "train.steps=4"}));
  scratch.run("documents", on_text(scratch, {"train.steps=4"}));
  std::string tail_loss = scratch.metric("tail", "validation_loss").back(),
              documents_loss = scratch.metric("documents", "validation_loss").back();
  ASSERT_NE(tail_loss, documents_loss);

  // The key is left out: as it began.
  scratch.run("run", on_text(scratch, {"data.validation_split=tail"}));
  scratch.run("run", on_text(scratch, {"train.steps=4"}));
  EXPECT_EQ(scratch.metric("run", "validation_loss").back(), tail_loss);
  EXPECT_NE(read_file(scratch.root() / "run/config.toml").find("\nvalidation_split = \"tail\""), std::string::npos);

  // It is given, and another.
  auto complaint = [&](std::string_view out, std::vector<std::string> more) -> std::string {
    std::vector<std::string> settings = on_text(scratch, {"train.steps=6"});
    settings.insert(settings.end(), more.begin(), more.end());
    try {
      scratch.run(out, settings);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(complaint("run", {"data.validation_split=documents"}).find("the run began with tail"), std::string::npos);
  EXPECT_NE(complaint("documents", {"train.seed=99"}).find("which chose its validation documents"), std::string::npos);
  EXPECT_EQ(complaint("documents", {"train.seed=99", "checkpoint.accept_changed=data"}), "");
}

TEST(Validation, RunsOfVersionsWithoutTheKeyKeepTheTail) {
  ScratchRun scratch("old-split");
  numbered_documents(scratch, 120);
  scratch.run("whole", on_text(scratch, {"data.validation_split=tail", "train.steps=4"}));
  scratch.run("run", on_text(scratch, {"data.validation_split=tail"}));
  for (const Checkpoint& checkpoint : list_checkpoints(scratch.root() / "run")) {
    nlohmann::json state = nlohmann::json::parse(read_file(checkpoint.path / "run_state.json"));
    state.erase("config"), state.erase("tokenizer"), state.erase("data");
    state["format"] = 1;  // the first version: no identity, no manifest
    write_file_atomically(checkpoint.path / "run_state.json", state.dump());
    fs::remove(checkpoint.path / "manifest.json");
  }
  scratch.run("run", on_text(scratch, {"train.steps=4"}));
  EXPECT_EQ(scratch.metric("run", "validation_loss").back(), scratch.metric("whole", "validation_loss").back());
}

TEST(Validation, PerplexityAndBitsPerByteAreOfTheSameLoss) {
  ScratchRun scratch("bits");
  numbered_documents(scratch, 200);
  std::vector<std::string> settings = on_text(scratch, {"train.eval_sequences=7"});
  TrainResult result = scratch.run("run", settings);
  double loss = std::stod(scratch.metric("run", "validation_loss").back());
  EXPECT_NEAR(std::stod(scratch.metric("run", "perplexity").back()), std::exp(loss), 1e-9 * std::exp(loss));
  // Bytes counted another way: the tokens one by one.
  Dataset data = dataset_of(scratch.config("tiny-llama.toml", settings));
  std::vector<int32_t> tokens(16 * 7), targets(16 * 7);
  data.validation->fill(0, 7, tokens, targets);
  int64_t bytes = 0;
  for (int32_t id : targets)
    if (!data.tokenizer->is_special(static_cast<uint32_t>(id)))
      bytes += std::ssize(data.tokenizer->token_bytes(static_cast<uint32_t>(id)));
  double expected = loss * 16 * 7 / (static_cast<double>(bytes) * std::log(2.0));
  EXPECT_NEAR(std::stod(scratch.metric("run", "bits_per_byte").back()), expected, 1e-9 * expected);
  EXPECT_NEAR(*result.bits_per_byte, expected, 1e-9 * expected);
}

TEST(Validation, UnigramEntropyOnlyWhereItSaysSomething) {
  ScratchRun scratch("unigram");
  // Two equally frequent ids, many of them: ln 2. The same with 60 ids in 200 tokens: too few to tell.
  std::string even, few;
  for (int i = 0; i < 40000; ++i) even += std::string{static_cast<char>(i % 2 + 1), '\0'};
  for (int i = 0; i < 4000; ++i) few += std::string{static_cast<char>(i % 60), '\0'};
  std::ofstream(scratch.root() / "even.u16", std::ios::binary) << even;
  std::ofstream(scratch.root() / "few.u16", std::ios::binary) << few;
  auto entropy = [&](const char* file) {
    return dataset_of(scratch.config("tiny-llama.toml", {fmt::format("data.train={}", (scratch.root() / file).string()),
                                                         "model.vocab=64", "batch.seq=16"}))
        .unigram_entropy;
  };
  ASSERT_TRUE(entropy("even.u16"));
  EXPECT_NEAR(*entropy("even.u16"), std::log(2.0), 1e-6);
  EXPECT_FALSE(entropy("few.u16"));
}

}  // namespace
}  // namespace sextant
