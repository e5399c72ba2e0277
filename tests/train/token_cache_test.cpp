// What is made of text, kept and found again: whole, or made anew; and what stands around documents there.
#include "train/data/token_cache.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "checkout.h"
#include "scratch_run.h"
#include "train/data/dataset.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

// What was said while the data was opened, a line each.
std::string opened(const RunConfig& run, CacheCheck check = CacheCheck::contents) {
  ThreadTeam team(1);
  std::string lines;
  tokenize_once(
      run, team, [&](std::string_view line) { lines += std::string(line) + "\n"; }, check);
  return lines;
}

fs::path only_entry_of(const fs::path& directory) {
  return fs::directory_iterator(directory)->path();
}

bool contains(const std::string& whole, const std::string& part) {
  return whole.find(part) != std::string::npos;
}

TEST(TokenCache, DamageIsFoundAndMended) {
  ScratchRun scratch("cache");
  RunConfig run = scratch.config("tiny-llama.toml", {});
  EXPECT_TRUE(contains(opened(run), "tokenizing the training data"));
  EXPECT_EQ(opened(run), "");
  const fs::path cache = only_entry_of(scratch.root() / "cache"), tokens = cache / "train.bin";
  const std::string whole = read_file(tokens);

  auto expect_mended = [&](const std::string& damage) {
    std::string said = opened(run);
    EXPECT_TRUE(contains(said, fmt::format("token cache {} is damaged: {}", cache.string(), damage))) << said;
    EXPECT_TRUE(contains(said, "; tokenizing again\n")) << said;
    EXPECT_EQ(read_file(tokens), whole);
    EXPECT_EQ(opened(run), "");
  };
  fs::resize_file(tokens, 1000);
  expect_mended(fmt::format("train.bin has 1000 bytes, expected {}", whole.size()));
  std::fstream(tokens, std::ios::binary | std::ios::in | std::ios::out)
      .seekp(512)
      .write(std::string(4096, '\0').data(), 4096);
  EXPECT_EQ(opened(run, CacheCheck::sizes), "");
  expect_mended("train.bin has other content than was written");
  fs::remove(cache / "validation.bin");
  expect_mended("validation.bin is missing");
  std::ofstream(cache / "tokenizer.json", std::ios::app) << " ";
  expect_mended("tokenizer.json has ");
  std::ofstream(cache / "manifest.json") << "{";
  expect_mended("manifest.json is not what was written");
  fs::remove(cache / "manifest.json");
  expect_mended("manifest.json is missing");
}

// The tokenizer's template puts a token before every document; every mesh trains on the same.
TEST(TokenCache, DocumentsBeginAsTheTokenizerSays) {
  ScratchRun scratch("begin");
  std::string text;
  for (int i = 0; i < 200; ++i)
    text += fmt::format("Document {} says that {} and {} are neighbours.<|endoftext|>", i, i, i + 1);
  std::ofstream(scratch.root() / "text.txt") << text;
  // The tiny config names the size of a tokenizer to be trained; here there is one.
  std::string config = read_file(fs::path(checkout::kSources) / "configs/tiny-llama.toml"),
              file = (scratch.root() / "config.toml").string();
  size_t size = config.find("tokenizer_vocab");
  std::ofstream(file) << config.erase(size, config.find('\n', size) - size);
  std::vector<std::string> settings{
      fmt::format("data.train={}", (scratch.root() / "text.txt").string()),
      fmt::format("data.tokenizer={}/tests/fixtures/tokenizer/llama3_style.json", checkout::kSources),
      "data.mask_documents=true",
      "model.vocab=0",
      "batch.seq=32",
      "batch.microbatch=2",
      "train.steps=2",
      "train.eval_every=2",
      "train.eval_sequences=3"};
  TrainResult one = scratch.run("one", settings, file);
  TokenFile tokens = open_token_file(only_entry_of(scratch.root() / "cache") / "train.bin");
  Tokenizer tokenizer = Tokenizer::load(only_entry_of(scratch.root() / "cache") / "tokenizer.json");
  std::vector<int32_t> ids(static_cast<size_t>(tokens.token_count()));
  tokens.read(0, ids);
  const auto begin = static_cast<int32_t>(*tokenizer.bos_id()), end = static_cast<int32_t>(*tokenizer.eos_id());
  ASSERT_NE(begin, end);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), begin), 200);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), end), 200);
  EXPECT_EQ(ids.front(), begin);
  for (size_t i = 1; i < ids.size(); ++i) ASSERT_EQ(ids[i] == begin, ids[i - 1] == end) << i;

  settings.insert(settings.end(), {"mesh.dp=2", "mesh.tp=2"});
  TrainResult four = scratch.run("four", settings, file);
  EXPECT_NEAR(four.loss, one.loss, 1e-5 * one.loss);
  EXPECT_NEAR(*four.validation_loss, *one.validation_loss, 1e-5 * one.loss);
}

TEST(TokenCache, NothingToTrainOnIsNamed) {
  ScratchRun scratch("empty");
  std::ofstream text(scratch.root() / "empty.txt"), tokens(scratch.root() / "empty.bin");
  for (const char* name : {"empty.txt", "empty.bin"}) {
    try {
      scratch.run("run", {fmt::format("data.train={}", (scratch.root() / name).string()), "model.vocab=512",
                          "data.tokenizer_vocab=300"});
      ADD_FAILURE() << name;
    } catch (const UserError& error) {
      EXPECT_TRUE(contains(error.what(), fmt::format("{}: the file is empty", name))) << error.what();
    }
  }
}

}  // namespace
}  // namespace sextant
