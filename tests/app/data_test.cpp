// Data files as a person hands them over: what is wrong with one is said with its name, and what one verb writes the
// next one reads.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/files.h"
#include "checkout.h"
#include "command.h"
#include "expectations.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

std::string train_on(const ScratchPlace& place, const std::string& data, const std::string& extra = "") {
  return tiny_train(place, fmt::format("data.train={} model.vocab=512 data.tokenizer_vocab=300 {}", data, extra));
}

fs::path token_cache_in(const ScratchPlace& place) {
  for (const fs::directory_entry& entry : fs::directory_iterator(place.path() / "cache"))
    if (entry.is_directory()) return entry.path();
  return {};
}

TEST(Data, EmptyFilesAndOtherKindsAreNamed) {
  ScratchPlace place("kinds");
  write_text(place / "empty.txt", "");
  write_text(place / "empty.bin", "");
  expect_refusal(run_command(train_on(place, place / "empty.txt")), 2, {"empty.txt: the file is empty"});
  expect_refusal(run_command(train_on(place, place / "empty.bin")), 2, {"empty.bin: the file is empty"});
  write_text(place / "table.parquet", "PAR1");
  expect_refusal(run_command(train_on(place, place / "table.parquet")), 2, {"table.parquet", "cut short"});
  expect_refusal(run_command("data inspect " + (place / "table.parquet")), 2, {"table.parquet", "cut short"});
  write_text(place / "array.npy", "x");
  expect_refusal(run_command(train_on(place, place / "array.npy")), 2, {"array.npy", "a NumPy array", "tofile"});
  expect_refusal(run_command("data inspect " + (place / "array.npy")), 2, {"array.npy", "a NumPy array", "tofile"});
  write_text(place / "lines.json", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n");
  expect_refusal(run_command(train_on(place, place / "lines.json")), 2,
                 {"lines.json", "without an array", "data.format"});
}

// Verbs that read data themselves refuse or leave out the same files as `train`.
TEST(Data, HiddenFilesAndOtherEncodingsAreSaidByEveryVerb) {
  ScratchPlace place("hidden");
  std::filesystem::create_directories(place.path() / "set/.ipynb_checkpoints");
  std::string text;
  for (int i = 0; i < 400; ++i) text += fmt::format("Sentence {} of a text.<|endoftext|>", i);
  write_text(place / "set/a.txt", text);
  write_text(place / "set/.ipynb_checkpoints/a.txt", text);
  write_text(place / "latin.txt", "Un caf\xe9 tr\xe8s fort.");
  const std::string made = place / "tokenizer.json";
  auto train_tokenizer = [&](const std::string& from) {
    return run_command(fmt::format("data train-tokenizer {} --vocab 300 --out {}", from, made));
  };
  auto tokenize = [&](const std::string& from) {
    return run_command(
        fmt::format("data tokenize {} --tokenizer {} --out {} --threads 1", from, made, place / "made.bin"));
  };
  constexpr const char* kHidden = "1 hidden file is left out: ";
  expect_refusal(train_tokenizer(place / "set"), 0, {kHidden});
  expect_refusal(tokenize(place / "set"), 0, {kHidden});
  expect_refusal(run_command("data inspect " + (place / "set")), 0, {kHidden, "documents   400"});
  EXPECT_NE(run_command("data inspect --json " + (place / "set")).output.find(kHidden), std::string::npos);
  for (const Outcome& refused :
       {train_tokenizer(place / "latin.txt"), tokenize(place / "latin.txt"),
        run_command("data inspect " + (place / "latin.txt")),
        run_command(train_on(place, place / "set", "data.validation=" + (place / "latin.txt"))),
        run_command("new --from-text " + (place / "latin.txt") + " --out " + (place / "new.toml"))})
    expect_refusal(refused, 2, {"latin.txt", "not UTF-8 (likely ISO-8859-1)", "iconv -f ISO-8859-1"});
}

TEST(Data, TablesAreReadByEveryVerb) {
  ScratchPlace place("tables");
  const std::string tables = std::string(checkout::kSources) + "/tests/fixtures/tables/",
                    many = tables + "many/delta.parquet";
  expect_refusal(run_command("data inspect " + tables + "v2_zstd.parquet"), 0, {"Parquet", "documents   22"});
  expect_refusal(run_command("data inspect " + tables + "stream_lz4.arrow"), 0, {"Arrow", "documents   22"});
  Outcome made =
      run_command(fmt::format("data train-tokenizer {} --vocab 300 --out {}", many, place / "tokenizer.json"));
  ASSERT_EQ(made.code, 0) << made.output;
  for (const char* name : {"table.csv.gz", "default.feather", "array.json", "texts.jsonl"}) {
    Outcome tokens = run_command(fmt::format("data tokenize {}{} --tokenizer {} --out {} --threads 1", tables, name,
                                             place / "tokenizer.json", place / name + std::string(".bin")));
    ASSERT_EQ(tokens.code, 0) << tokens.output;
    EXPECT_EQ(read_file(place / name + std::string(".bin")), read_file(place / "table.csv.gz.bin")) << name;
  }
  Outcome trained = run_command(train_on(
      place, many, "train.steps=1 train.eval_every=0 checkpoint.at_end=false batch.sequences=1 batch.microbatch=1"));
  EXPECT_EQ(trained.code, 0) << trained.output;
}

// A byte-level tokenizer of 70,000 tokens, whose end-of-text is the last of them.
std::string large_tokenizer() {
  std::string vocab;
  int id = 0;
  auto add = [&](const std::string& name) {
    vocab += fmt::format("{}\"{}\": {}", id == 0 ? "" : ", ", name, id), ++id;
  };
  for (char letter = 'a'; letter <= 'z'; ++letter) add(std::string(1, letter));
  add("Ġ");
  while (id < 69'999) add(fmt::format("t{}", id));
  return fmt::format(
      R"({{"version": "1.0", "added_tokens": [{{"id": 69999, "content": "<|endoftext|>", "special": true}}],
    "pre_tokenizer": {{"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}}, "decoder": {{"type": "ByteLevel"}},
    "model": {{"type": "BPE", "vocab": {{{}}}, "merges": []}}}})",
      vocab);
}

TEST(Data, TokensOfALargeVocabularyAreTrainedOnAsTheyWereWritten) {
  ScratchPlace place("large");
  write_text(place / "tokenizer.json", large_tokenizer());
  std::string text;
  for (int i = 0; i < 400; ++i) text += "some words to be read\n<|endoftext|>\n";
  write_text(place / "text.txt", text);
  Outcome made = run_command(fmt::format("data tokenize {} --tokenizer {} --out {} --threads 1", place / "text.txt",
                                         place / "tokenizer.json", place / "x.bin"));
  ASSERT_EQ(made.code, 0) << made.output;
  Outcome seen = run_command(fmt::format("data inspect {} --tokenizer {}", place / "x.bin", place / "tokenizer.json"));
  expect_refusal(seen, 0, {"u32", "69,999", "documents   400", "some words"});
  Outcome trained = run_command(tiny_train(
      place,
      fmt::format(
          "data.train={} model.vocab=70000 model.layers=1 model.hidden=16 model.ffn=16 model.heads=2 "
          "train.steps=1 train.eval_every=0 checkpoint.at_end=false batch.sequences=1 batch.microbatch=1 batch.seq=16",
          place / "x.bin")));
  EXPECT_EQ(trained.code, 0) << trained.output;
}

TEST(Data, ATokenFileCutShortDuringTrainingEndsTheRunWithItsName) {
  ScratchPlace place("cut");
  std::string ids;
  for (int i = 0; i < (1 << 20); ++i) ids += std::string{static_cast<char>(i * 7), static_cast<char>(i % 2)};
  for (const char* mesh : {"mesh.dp=1", "mesh.dp=2"}) {
    write_text(place / "x.bin", ids);
    std::string out = place / mesh;
    auto run = std::async(std::launch::async, [&] {
      return run_command(fmt::format("train {} --out {} data.train={} model.vocab=512 train.threads=1 "
                                     "train.steps=100000000 train.eval_every=0 "
                                     "checkpoint.at_end=false batch.sequences=2 batch.microbatch=1 batch.seq=16 {}",
                                     config_path("tiny-llama.toml"), out, place / "x.bin", mesh),
                         "timeout -k 2 60");
    });
    // It trains as soon as it has written a line.
    std::error_code none;
    while (run.wait_for(std::chrono::milliseconds(5)) != std::future_status::ready)
      if (fs::exists(out + "/metrics.jsonl", none) && fs::file_size(out + "/metrics.jsonl", none) > 0) break;
    fs::resize_file(place / "x.bin", 4096);
    expect_refusal(run.get(), 3, {"x.bin", "cut short", "in use"});
  }
}

TEST(Data, ADamagedTokenCacheIsMadeAgain) {
  ScratchPlace place("cache");
  std::string train = tiny_train(place, "train.steps=1 train.eval_every=0 checkpoint.at_end=false");
  ASSERT_EQ(run_command(train).code, 0);
  fs::path cache = token_cache_in(place);
  fs::resize_file(cache / "train.bin", 2000);
  expect_refusal(run_command(train), 0,
                 {"token cache", "is damaged: train.bin has 2000 bytes, expected", "tokenizing again",
                  "tokenizing the training data"});
  EXPECT_EQ(run_command(train).output.find("tokeniz"), std::string::npos);
}

TEST(Data, InspectReadsATokenCache) {
  ScratchPlace place("inspect-cache");
  write_text(
      place / "text.jsonl",
      "{\"text\": \"some words to be read by it\"}\n{\"bad\": 1}\n{\"text\": \"and more words to be read by it\"}\n");
  ASSERT_EQ(run_command(train_on(place, place / "text.jsonl",
                                 "train.steps=1 batch.seq=8 train.eval_every=0 data.on_error=skip"))
                .code,
            0);
  std::string cache = token_cache_in(place).string();
  expect_refusal(
      run_command("data inspect " + cache), 0,
      {"token cache", "train.bin", "documents   2", "text.jsonl", "1 document could not be read", "some words"});
  Outcome json = run_command("data inspect --json " + cache);
  nlohmann::json parsed = nlohmann::json::parse(json.output, nullptr, false);
  ASSERT_TRUE(parsed.is_object()) << json.output;
  const auto& part = parsed["parts"]["train.bin"];
  EXPECT_EQ(part["documents"], 2);
  EXPECT_EQ(part["text_bytes"], 27 + 31);
  EXPECT_EQ(part["skipped"]["count"], 1);
  EXPECT_TRUE(part["begins"].get<std::string>().starts_with("some words"));
  Outcome text = run_command("data inspect --json " + (place / "text.jsonl"));
  EXPECT_NE(text.code, 0) << "a line without text is refused";
}

TEST(Data, TraceNamesDocumentsOfARun) {
  ScratchPlace place("trace");
  std::string text;
  for (int i = 0; i < 300; ++i) text += fmt::format("{{\"text\": \"line {} has some words in it\"}}\n", i);
  write_text(place / "text.jsonl", text);
  ASSERT_EQ(run_command(train_on(place, place / "text.jsonl", "train.steps=2 batch.seq=16 train.eval_every=0")).code,
            0);
  std::string trace = fmt::format("data trace {} --step ", place / "run");
  Outcome shown = run_command(trace + "2");
  expect_refusal(shown, 0, {"step 2 of", "samples ", "document ", "text.jsonl:", "from token"});
  Outcome json = run_command(trace + "2 --json");
  ASSERT_EQ(json.code, 0) << json.output;
  nlohmann::json parsed = nlohmann::json::parse(json.output, nullptr, false);
  ASSERT_TRUE(parsed.is_object()) << json.output;
  int64_t tokens = 0;
  for (const auto& piece : parsed["samples"][0]["pieces"]) {
    tokens += piece["tokens"].get<int64_t>();
    EXPECT_TRUE(piece["source"]["file"].get<std::string>().ends_with("text.jsonl"));
  }
  EXPECT_EQ(tokens, 17);
  expect_refusal(run_command(trace + "3"), 2, {"step 3", "1 to 2"});
  expect_refusal(run_command(fmt::format("data trace {} --step 1", place / "cache")), 2, {"--out directory of a run"});
}

TEST(Data, TheFormerKeyOfEvaluationNamesTheNewOne) {
  expect_refusal(run_command(fmt::format("plan {} train.eval_batches=4", config_path("tiny-llama.toml"))), 2,
                 {"train.eval_batches", "train.eval_sequences", "sequences"});
}

}  // namespace
}  // namespace sextant
