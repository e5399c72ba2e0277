// The token cache of a text is found again: whole, or made anew; and the special tokens around documents in it.
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

// Messages while the data is opened, a line each.
std::string opened(const RunConfig& run, CacheCheck check = CacheCheck::contents) {
  ThreadTeam team(1);
  std::string lines;
  tokenize_once(
      run, team, [&](std::string_view line) { lines += std::string(line) + "\n"; }, check);
  return lines;
}

fs::path only_cache_in(const fs::path& directory) {
  for (const fs::directory_entry& entry : fs::directory_iterator(directory))
    if (entry.is_directory()) return entry.path();
  return {};
}

bool contains(const std::string& whole, const std::string& part) {
  return whole.find(part) != std::string::npos;
}

TEST(TokenCache, DamageIsFoundAndMended) {
  ScratchRun scratch("cache");
  RunConfig run = scratch.config("tiny-llama.toml", {});
  EXPECT_TRUE(contains(opened(run), "tokenizing the training data"));
  EXPECT_EQ(opened(run), "");
  const fs::path cache = only_cache_in(scratch.root() / "cache"), tokens = cache / "train.bin";
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
  TokenFile tokens = open_token_file(only_cache_in(scratch.root() / "cache") / "train.bin");
  Tokenizer tokenizer = Tokenizer::load(only_cache_in(scratch.root() / "cache") / "tokenizer.json");
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

// A text file whose bytes change where its size and time do not is damaged: what is read again is not other text.
TEST(TokenCache, ASourceThatIsReadAgainIsHeldToItsHash) {
  ScratchRun scratch("source-hash");
  const fs::path text = scratch.root() / "text.parquet";
  fs::copy_file(fs::path(checkout::kSources) / "tests/fixtures/tables/v1_none.parquet", text);
  const fs::file_time_type time = fs::last_write_time(text);
  auto config = [&](int tokens) {
    return scratch.config("tiny-llama.toml", {fmt::format("data.train={}", text.string()), "model.vocab=512",
                                              fmt::format("data.tokenizer_vocab={}", tokens)});
  };
  RunConfig run = config(300);
  EXPECT_TRUE(contains(opened(run), "tokenizing the training data"));
  const fs::path first = only_cache_in(scratch.root() / "cache");

  const std::string whole = read_file(text);
  std::string damaged = whole;
  const size_t at = damaged.find("The first text.");
  ASSERT_NE(at, std::string::npos);
  damaged[at] ^= 1;
  auto write = [&](const std::string& content, fs::file_time_type when) {
    std::ofstream(text, std::ios::binary) << content;
    fs::last_write_time(text, when);
  };
  auto refusal = [&](const RunConfig& config) -> std::string {
    try {
      return opened(config);
    } catch (const UserError& error) {
      return error.what();
    }
  };
  write(damaged, time);
  EXPECT_EQ(opened(run), "");  // what was made of the whole file is there
  // Another tokenizer, and a cache that is gone: both read the file again.
  EXPECT_TRUE(contains(refusal(config(290)), "text.parquet: its content has changed"));
  fs::remove_all(first);
  EXPECT_TRUE(contains(refusal(run), "text.parquet: its content has changed"));
  write(whole, time);
  EXPECT_TRUE(contains(opened(run), "tokenizing the training data"));
  // Changed on purpose: another time, another cache. The same content is the same cache, whatever its time.
  write(damaged, time + std::chrono::hours(1));
  EXPECT_TRUE(contains(opened(run), "tokenizing the training data"));
  write(whole, time + std::chrono::hours(2));
  EXPECT_EQ(opened(run), "");
}

TEST(TokenCache, HiddenFilesAreNamed) {
  ScratchRun scratch("hidden");
  const fs::path set = scratch.root() / "set";
  fs::create_directories(set / ".ipynb_checkpoints");
  std::string text;
  for (int i = 0; i < 400; ++i) text += fmt::format("Sentence {} of a text.<|endoftext|>", i);
  std::ofstream(set / "a.txt") << text;
  std::ofstream(set / ".ipynb_checkpoints/a.txt") << text;
  RunConfig run = scratch.config(
      "tiny-llama.toml", {fmt::format("data.train={}", set.string()), "model.vocab=512", "data.tokenizer_vocab=300"});
  EXPECT_TRUE(contains(opened(run), "1 hidden file is left out: "));
}

// A part of the data that holds no sample is said to be that part.
TEST(TokenCache, TooFewTokensNameThePart) {
  ScratchRun scratch("few");
  std::ofstream(scratch.root() / "a.u16", std::ios::binary) << std::string(2000, '\1');
  auto refusal = [&](std::vector<std::string> more) -> std::string {
    more.insert(more.end(), {fmt::format("data.train={}", (scratch.root() / "a.u16").string()), "model.vocab=512"});
    try {
      scratch.run("run", more);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  std::string held = refusal({"batch.seq=100"});
  EXPECT_TRUE(contains(held, "data.validation_fraction = 0.05 holds 50 of 1,000 tokens out for validation")) << held;
  EXPECT_TRUE(contains(held, "at least 101")) << held;
  EXPECT_TRUE(contains(held, "raise data.validation_fraction")) << held;
  std::ofstream(scratch.root() / "few.u16", std::ios::binary) << std::string(100, '\1');
  std::string given =
      refusal({"batch.seq=100", fmt::format("data.validation={}", (scratch.root() / "few.u16").string())});
  EXPECT_TRUE(contains(given, "few.u16: the validation data has 50 tokens; expected at least 101")) << given;
  std::string train = refusal({"batch.seq=990", "data.validation_fraction=0.5"});
  EXPECT_TRUE(contains(train, "500 of 1,000 tokens are left to train on")) << train;
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
