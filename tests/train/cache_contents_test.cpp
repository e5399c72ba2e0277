// Facts that a token cache keeps about the text it was made of.
#include "train/data/cache_contents.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "run/resolve_spec.h"
#include "scratch_run.h"
#include "train/data/dataset.h"

namespace sextant {
namespace {

using Origin = DocumentOrigins::Origin;

TEST(CacheContents, OriginsComeBack) {
  DocumentOrigins origins;
  std::vector<Origin> added;
  for (int64_t i = 0; i < 200; ++i) {
    Origin origin{i < 120 ? "a.jsonl" : "b.txt", i < 120 ? i + 1 + i / 50 : i - 119};
    origins.add(origin.file, origin.record);
    added.push_back(origin);
  }
  EXPECT_EQ(origins.runs().size(), 4u);
  ScratchRun scratch("contents");
  CacheContents contents;
  contents["train.bin"] = {.documents = 200, .tokens = 999, .text_bytes = 5000, .skipped = {}, .origins = origins};
  contents["train.bin"].skipped.add("a.jsonl:51: \xff bad");
  write_cache_contents(scratch.root(), contents);
  CacheContents read = read_cache_contents(scratch.root());
  const PartContents& part = read.at("train.bin");
  EXPECT_EQ(part.documents, 200);
  EXPECT_EQ(part.tokens, 999);
  EXPECT_EQ(part.text_bytes, 5000);
  EXPECT_EQ(part.skipped.count, 1);
  for (size_t i = 0; i < added.size(); ++i) EXPECT_EQ(part.origins.of(static_cast<int64_t>(i)), added[i]) << i;
  EXPECT_EQ(DocumentOrigins().of(0), std::nullopt);
  for (const char* bad : {"", "[]x", "{\"a\": 1}", "{\"a\": {\"documents\": \"x\"}}",
                          "{\"a\": {\"documents\": 1, \"tokens\": 1, \"text_bytes\": 1, \"skipped\": {\"count\": 0, "
                          "\"first\": []}, \"files\": [], \"runs\": [[0, 0, 1]]}}"}) {
    write_file_atomically(scratch.root() / kContentsFile, bad);
    EXPECT_THROW(read_cache_contents(scratch.root()), UserError) << bad;
  }
}

TEST(CacheContents, SkippedDocumentsAreReportedByEveryRun) {
  ScratchRun scratch("skipped");
  std::string text;
  for (int i = 0; i < 400; ++i)
    text += i == 7 || i == 300 ? "{\"nothing\": 1}\n" : fmt::format("{{\"text\": \"some words, {} of them\"}}\n", i);
  std::ofstream(scratch.root() / "text.jsonl") << text;
  auto lines = [&](const std::string& on_error) {
    RunConfig run =
        scratch.config("tiny-llama.toml", {fmt::format("data.train={}", (scratch.root() / "text.jsonl").string()),
                                           "data.tokenizer_vocab=300", "batch.seq=16", "data.on_error=" + on_error});
    ThreadTeam team(1);
    std::string said;
    open_dataset(run, resolve_spec(run), team, [&](std::string_view line) { (said += line) += '\n'; });
    return said;
  };
  EXPECT_THROW(lines("stop"), UserError);
  std::string first = lines("skip"), second = lines("skip"), report = "2 documents could not be read and were skipped";
  EXPECT_NE(first.find("tokenizing"), std::string::npos);
  EXPECT_EQ(second.find("tokenizing"), std::string::npos) << second;
  for (const std::string& said : {first, second}) {
    EXPECT_NE(said.find(report), std::string::npos) << said;
    EXPECT_NE(said.find("text.jsonl:8"), std::string::npos) << said;
    EXPECT_EQ(said.find("hint"), std::string::npos) << said;
    EXPECT_NE(said.find("text.jsonl:301"), std::string::npos) << said;
  }
  EXPECT_THROW(lines("stop"), UserError) << "the cache of another data.on_error was taken";
}

}  // namespace
}  // namespace sextant
