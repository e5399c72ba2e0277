// Documents that cannot be read: refused, or left out and counted, and never more than a few of them.
#include "data/skipped_records.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "data/scratch_folder.h"
#include "data/text_source.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

struct Reading {
  std::vector<std::string> documents;
  std::vector<int64_t> records;
  SkippedRecords skipped;
};

Reading read_skipping(const fs::path& path, TextOptions options = {}) {
  options.on_error = OnError::skip;
  Reading reading;
  std::vector<fs::path> paths{path};
  reading.skipped = for_each_placed_document(paths, options, [&](const PlacedDocument& document) {
    reading.documents.emplace_back(document.text);
    reading.records.push_back(document.record);
  });
  return reading;
}

std::string good_line(int i) {
  return fmt::format("{{\"text\": \"d{}\"}}\n", i);
}

TEST(SkippedRecords, EveryKindOfFaultIsLeftOutAndNamed) {
  ScratchFolder folder;
  const std::string too_long = "{\"text\": \"" + std::string(200, 'x') + "\"}\n";
  std::vector<std::pair<std::string, std::string_view>> faults{
      {"{\"text\" 7}\n", "not valid JSON"},  {"{\"other\": \"y\"}\n", "no key \"text\""},
      {"{\"text\": 7}\n", "holds a number"}, {"{\"text\": \"\xff\xfe\"}\n", "UTF-8"},
      {"[1, 2]\n", "the line is an array"},  {too_long, "within 100 bytes"},
  };
  for (const auto& [fault, reason] : faults) {
    auto path = folder.write("a.jsonl", good_line(1) + fault + good_line(2));
    std::vector<fs::path> paths{path};
    TextOptions options{.max_document_bytes = 100};
    std::string refusal = complaint_of([&] { for_each_document(paths, options, [](std::string_view) {}); });
    EXPECT_TRUE(says(refusal, {"a.jsonl:2"})) << fault;
    Reading reading = read_skipping(path, options);
    EXPECT_EQ(reading.documents, (std::vector<std::string>{"d1", "d2"})) << fault;
    EXPECT_EQ(reading.records, (std::vector<int64_t>{1, 3})) << fault;
    ASSERT_EQ(reading.skipped.count, 1) << fault;
    EXPECT_TRUE(says(reading.skipped.first[0], {"a.jsonl:2", reason})) << fault;
  }
}

TEST(SkippedRecords, TooLongAndBrokenPlainText) {
  ScratchFolder folder;
  // The long one is longer than what is read at a time, and its separator lies across two reads.
  std::string end = "<|endoftext|>";
  for (size_t length : {size_t{200}, (size_t{256} << 10) - 21, size_t{3} << 20}) {
    auto path =
        folder.write("a.txt", "one" + end + std::string(length, 'x') + end + "\ntwo\n" + end + "\xff" + end + "three");
    Reading reading = read_skipping(path, {.max_document_bytes = 100});
    EXPECT_EQ(reading.documents, (std::vector<std::string>{"one", "\ntwo\n", "three"})) << length;
    EXPECT_EQ(reading.skipped.count, 2);
    EXPECT_TRUE(says(reading.skipped.text(), {"2 documents", "a.txt: document 2", "a.txt: document 4", "UTF-8"}));
  }
  // At the end of the file there is nothing to go on with.
  Reading last = read_skipping(folder.write("b.txt", "one" + end + std::string(500, 'x')), {.max_document_bytes = 100});
  EXPECT_EQ(last.documents, (std::vector<std::string>{"one"}));
  EXPECT_EQ(last.skipped.count, 1);
}

TEST(SkippedRecords, TheFirstThreePlacesAreKept) {
  ScratchFolder folder;
  std::string text;
  for (int i = 0; i < 60; ++i) text += i % 12 == 3 ? "x\n" : good_line(i);
  Reading reading = read_skipping(folder.write("a.jsonl", text));
  EXPECT_EQ(reading.skipped.count, 5);
  ASSERT_EQ(reading.skipped.first.size(), 3u);
  EXPECT_TRUE(says(reading.skipped.text(), {"5 documents", "a.jsonl:4", "a.jsonl:16", "a.jsonl:28", "and 2 more"}));
}

TEST(SkippedRecords, ManyAreAnErrorAllTheSame) {
  ScratchFolder folder;
  auto file = [&](int bad, int good) {
    std::string text;
    for (int i = 0; i < bad; ++i) text += "x\n";
    for (int i = 0; i < good; ++i) text += good_line(i);
    return folder.write("a.jsonl", text);
  };
  EXPECT_EQ(read_skipping(file(99, 10)).skipped.count, 99);     // fewer than a hundred
  EXPECT_EQ(read_skipping(file(100, 900)).skipped.count, 100);  // a tenth
  EXPECT_TRUE(
      says(complaint_of([&] { read_skipping(file(100, 899)); }), {"a.jsonl", "100 of 999", "a.jsonl:1", "a tenth"}));
  EXPECT_TRUE(says(complaint_of([&] { read_skipping(file(5, 0)); }), {"5 documents", "one document at least"}));
}

TEST(SkippedRecords, DamagedArchivesStop) {
  ScratchFolder folder;
  std::string text;
  for (int i = 0; i < 50; ++i) text += good_line(i);
  fs::path path = folder / "a.jsonl.gz";
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  EXPECT_EQ(read_skipping(path).documents.size(), 50u);
  std::fstream bytes(path, std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekp(static_cast<std::streamoff>(fs::file_size(path)) - 8);  // the checksum
  bytes.put('\x55').put('\x55').put('\x55');
  bytes.close();
  EXPECT_TRUE(says(complaint_of([&] { read_skipping(path); }), {"a.jsonl.gz", "damaged"}));
}

}  // namespace
}  // namespace sextant
