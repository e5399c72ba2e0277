// Tables that pyarrow and Python's csv and json modules wrote (tests/peers/make_table_fixtures.py), and what is wrong
// with damaged ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "base/files.h"
#include "checkout.h"
#include "data/data_facts.h"
#include "data/formats/arrow/arrow_file.h"
#include "data/formats/csv_file.h"
#include "data/formats/json_array_file.h"
#include "data/formats/parquet/parquet_file.h"
#include "data/scratch_folder.h"
#include "data/text_source.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;
using Texts = std::vector<std::string>;

const fs::path kTables = std::string(checkout::kSources) + "/tests/fixtures/tables";

Texts texts_of(const fs::path& path, const TextOptions& options = {}) {
  Texts texts;
  std::vector<fs::path> paths{path};
  for_each_document(paths, options, [&](std::string_view text) { texts.emplace_back(text); });
  return texts;
}

std::string refusal_of(const fs::path& path, const TextOptions& options = {}) {
  return complaint_of([&] { texts_of(path, options); });
}

std::vector<fs::path> tables_in(const fs::path& folder) {
  std::vector<fs::path> tables;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().extension() != ".jsonl") tables.push_back(entry.path());
  std::sort(tables.begin(), tables.end());
  return tables;
}

#if defined(SEXTANT_SNAPPY) && defined(SEXTANT_LZ4)
constexpr bool kEveryCodec = true;
#else
constexpr bool kEveryCodec = false;
#endif

TEST(Tables, HoldTheTextsThatWereWritten) {
  if (!kEveryCodec) GTEST_SKIP() << "libsnappy or liblz4 is missing";
  const Texts expected = texts_of(kTables / "texts.jsonl");
  ASSERT_EQ(expected.size(), 22u);
  std::vector<fs::path> tables = tables_in(kTables);
  EXPECT_GE(tables.size(), 40u);
  for (const fs::path& table : tables) EXPECT_EQ(texts_of(table), expected) << table;
}

TEST(Tables, LongerThanTheBlocksOfTheirEncodings) {
  Texts expected;
  for (int i = 0; i < 1000; ++i) expected.push_back(fmt::format("document {} of many", i % 300));
  for (const fs::path& table : tables_in(kTables / "many")) EXPECT_EQ(texts_of(table), expected) << table;
}

TEST(Tables, OtherColumnsAreChosenByName) {
  EXPECT_TRUE(says(refusal_of(kTables / "plain.parquet", {.text_key = "body"}),
                   {"plain.parquet", "no column \"body\"", "id, tags, meta, text, score", "data.text_key"}));
  EXPECT_TRUE(
      says(refusal_of(kTables / "plain.parquet", {.text_key = "id"}), {"column \"id\" holds INT64", "a string"}));
  EXPECT_TRUE(says(refusal_of(kTables / "plain.parquet", {.text_key = "meta"}), {"\"meta\" holds a group"}));
  EXPECT_TRUE(says(refusal_of(kTables / "plain.parquet", {.text_key = "tags"}), {"\"tags\" holds a group"}));
  EXPECT_TRUE(says(refusal_of(kTables / "file_plain.arrow", {.text_key = "body"}),
                   {"file_plain.arrow", "no column \"body\"", "kind, nothing, union, id, tags, meta, text, score"}));
  EXPECT_TRUE(says(refusal_of(kTables / "file_plain.arrow", {.text_key = "score"}), {"holds FloatingPoint", "Utf8"}));
  EXPECT_TRUE(says(refusal_of(kTables / "table.csv", {.text_key = "body"}),
                   {"table.csv:1", "no column \"body\"", "id, text, score, of what"}));
  EXPECT_TRUE(says(refusal_of(kTables / "array.json", {.text_key = "body"}),
                   {"array.json: element 1", "no key \"body\"", "id, meta, text"}));
  EXPECT_EQ(texts_of(kTables / "views.arrow", {.text_key = "other"}),
            Texts(33, "a view that is longer than twelve bytes"));
}

TEST(Tables, WhatIsNotReadIsNamed) {
  EXPECT_TRUE(says(refusal_of(kTables / "refused/brotli.parquet"), {"row group 1, page 1", "BROTLI", "ZSTD"}));
  EXPECT_TRUE(says(refusal_of(kTables / "refused/byte_stream_split.parquet"), {"holds FIXED_LEN_BYTE_ARRAY"}));
  EXPECT_TRUE(
      says(refusal_of(kTables / "refused/dictionary.arrow"), {"column \"text\" holds entries of a dictionary"}));
  EXPECT_TRUE(says(refusal_of(kTables / "refused/no_rows.parquet"), {"no_rows.parquet: there is no text in it"}));
  ScratchFolder folder;
  EXPECT_TRUE(says(refusal_of(folder.write("a.parquet", "PAR1 something PARE")), {"a.parquet", "encrypted"}));
  EXPECT_TRUE(says(refusal_of(folder.write("a.feather", "FEA1 something")), {"a.feather", "version 1"}));
  EXPECT_TRUE(says(refusal_of(folder.write("a.parquet", "text")), {"a.parquet", "PAR1"}));
  EXPECT_TRUE(says(refusal_of(folder.write("a.arrow", "some text of no kind")), {"a.arrow", "no message begins"}));
  EXPECT_TRUE(says(refusal_of(folder.write("a.parquet.gz", "x")), {"a.parquet.gz", "not read through .gz", "unpack"}));
}

TEST(Tables, PlacesAndFacts) {
  for (auto [name, place] : {std::pair{"plain.parquet", "plain.parquet: row 4"},
                             {"views.arrow", "views.arrow: row 4"},
                             {"table.csv", "table.csv:5"},
                             {"array.json", "array.json: element 4"}}) {
    std::array paths{kTables / name};
    DocumentReader reader(paths);
    ASSERT_EQ(reader.next(), "The first text.");
    ASSERT_TRUE(reader.next()->starts_with("Quotes"));
    EXPECT_TRUE(reader.place().ends_with(place)) << reader.place();
  }
  DataFacts facts = inspect_data(kTables / "plain.parquet");
  EXPECT_EQ(facts.kind, "Parquet");
  EXPECT_EQ(facts.documents, 22);
  EXPECT_EQ(inspect_data(kTables / "table.tsv").kind, "tab-separated values");
}

TEST(Tables, InFoldersJsonFilesAreLeft) {
  ScratchFolder folder;
  fs::create_directories(folder / "set");
  fs::copy(kTables / "stream_plain.arrow", folder / "set/data-00000-of-00001.arrow");
  folder.write("set/dataset_info.json", "{\"features\": {}}");
  EXPECT_EQ(texts_of(folder / "set"), texts_of(kTables / "texts.jsonl"));
  folder.write("only/a.json", "[]");
  EXPECT_TRUE(says(refusal_of(folder / "only"), {"no text file", "a.json", "name the file itself"}));
}

// The message of a reader that refuses the bytes, or ""; `texts` are the documents that it read.
template <class Open>
std::string cut_refusal(const Open& open, Texts& texts) {
  texts.clear();
  try {
    auto file = open();
    while (auto text = file->next())
      if (!text->empty()) texts.emplace_back(*text);
  } catch (const UserError& error) {
    return error.what();
  } catch (const StreamError& error) {
    return error.what();
  }
  return "";
}

TEST(Tables, EveryCutIsRefused) {
  if (!kEveryCodec) GTEST_SKIP() << "libsnappy or liblz4 is missing";
  Texts texts;
  for (auto [name, step] : {std::pair<std::string, size_t>{"v1_snappy.parquet", 1},
                            {"v2_gzip.parquet", 5},
                            {"v1_delta_byte_array_pages.parquet", 5},
                            {"default.feather", 1},
                            {"file_lz4.arrow", 7},
                            {"stream_zstd.arrow", 7}}) {
    std::string whole = read_file(kTables / name);
    for (size_t kept = 0; kept < whole.size(); kept += step) {
      std::string cut = whole.substr(0, kept);  // on the heap, so that reading beyond it is noticed
      auto open = [&]() -> std::unique_ptr<DocumentFile> {
        if (name.ends_with(".parquet")) return std::make_unique<ParquetFile>("cut", cut, TextOptions{});
        return std::make_unique<ArrowFile>("cut", cut, TextOptions{});
      };
      EXPECT_TRUE(says(cut_refusal(open, texts), {"cut"})) << name << " " << kept;
    }
  }
  for (const char* name : {"array.json", "object.json"}) {
    std::string whole = read_file(kTables / name);
    for (size_t kept = 0; kept < whole.size(); kept += kept < whole.size() - 200 ? 17 : 1) {
      std::string cut = whole.substr(0, kept);
      auto open = [&] {
        return std::make_unique<JsonArrayFile>(open_stream(std::string_view(cut), Compression::none), "cut",
                                               TextOptions{});
      };
      EXPECT_TRUE(says(cut_refusal(open, texts), {"cut"})) << name << " " << kept;
    }
  }
  // The end of a table of values says nothing; what is read of a cut one is its beginning.
  const Texts all = texts_of(kTables / "texts.jsonl");
  std::string whole = read_file(kTables / "quoted.csv");
  size_t refused = 0, cuts = 0;
  for (size_t kept = 0; kept < whole.size(); kept += 3, ++cuts) {
    std::string cut = whole.substr(0, kept);
    auto open = [&] {
      return std::make_unique<CsvFile>(open_stream(std::string_view(cut), Compression::none),
                                       CsvOptions{.name = "cut"});
    };
    if (!cut_refusal(open, texts).empty()) ++refused;
    ASSERT_LE(texts.size(), all.size());
    EXPECT_TRUE(std::equal(texts.begin(), texts.end(), all.begin())) << kept;
  }
  EXPECT_GT(refused * 10, cuts * 9);
}

TEST(Tables, DamagedPagesAreNoticed) {
  std::string whole = read_file(kTables / "checksums.parquet");
  size_t at = whole.find("The first text.");
  ASSERT_NE(at, std::string::npos);
  whole[at] = 't';
  ScratchFolder folder;
  EXPECT_TRUE(says(refusal_of(folder.write("a.parquet", whole)), {"a.parquet: row group 1, page 1", "checksum"}));
  whole = read_file(kTables / "plain.parquet");
  at = whole.find("The first text.");
  whole[at] = '\xff';
  EXPECT_TRUE(says(refusal_of(folder.write("a.parquet", whole)), {"a.parquet: row 1", "not UTF-8"}));
  whole[at - 1] = '\x7f';  // the highest byte of its length
  EXPECT_TRUE(says(refusal_of(folder.write("a.parquet", whole)), {"row group 1, page 1", "bytes are needed"}));
}

TEST(Csv, FollowsRfc4180) {
  ScratchFolder folder;
  auto texts = [&](std::string_view content) { return texts_of(folder.write("a.csv", content)); };
  EXPECT_EQ(texts("text\na\nb"), (Texts{"a", "b"}));
  EXPECT_EQ(texts("\xEF\xBB\xBFtext,id\r\n\"a\r\n,\"\"b\"\"\",1\r\n\r\nc\"d,2\r\n"), (Texts{"a\r\n,\"b\"", "c\"d"}));
  EXPECT_EQ(texts("id,\"text\"\r1,x\r2,\r3,\"y\""), (Texts{"x", "y"}));
  auto refusal = [&](std::string_view content) { return refusal_of(folder.write("a.csv", content)); };
  EXPECT_TRUE(says(refusal("id,text\n1,a\n2\n"), {"a.csv:3", "1 fields", "expected 2"}));
  EXPECT_TRUE(says(refusal("id,text\n1,\"a\nb\"\n2,b,c\n"), {"a.csv:4", "3 fields"}));
  EXPECT_TRUE(says(refusal("id,text\n1,\"a\n2,b\n"), {"a.csv:2", "never ends"}));
  EXPECT_TRUE(says(refusal("id,text\n1,\"a\"b\n"), {"a.csv:2", "text follows the quote"}));
  EXPECT_TRUE(says(refusal("text,text\na,b\n"), {"a.csv:1", "twice"}));
  EXPECT_TRUE(says(refusal("text\na\n\xff\n"), {"a.csv:3", "not UTF-8"}));
  EXPECT_TRUE(says(refusal("text\n"), {"a.csv", "no text in it"}));
  EXPECT_TRUE(says(refusal_of(folder.write("a.csv", "text\n0123456789a\n"), {.max_document_bytes = 10}),
                   {"a.csv:2", "within 10 bytes"}));
}

// Fields across the edges of what is read at once.
TEST(Csv, LongFieldsComeBackWhole) {
  Texts expected;
  std::string content = "text,n\n";
  for (size_t i = 0; content.size() < (size_t{3} << 20); ++i) {
    std::string run(1 + i * 7919 % 300000, static_cast<char>('a' + i % 26));
    expected.push_back(run + "\n,\"" + run);
    content += "\"" + run + "\n,\"\"" + run + "\"," + std::to_string(i) + "\n";
  }
  ScratchFolder folder;
  EXPECT_EQ(texts_of(folder.write("long.csv", content)), expected);
}

TEST(Json, ArraysAndObjectsWithOne) {
  ScratchFolder folder;
  auto texts = [&](std::string_view content) { return texts_of(folder.write("a.json", content)); };
  EXPECT_EQ(texts("[{\"text\": \"a\"}, {\"text\": \"\"},\n {\"text\": \"]}\\\"\"}]\n"), (Texts{"a", "]}\""}));
  EXPECT_EQ(texts("{\"n\": 1, \"rows\": [{\"text\": \"a\"}], \"more\": {\"x\": []}}"), (Texts{"a"}));
  auto refusal = [&](std::string_view content) { return refusal_of(folder.write("a.json", content)); };
  EXPECT_TRUE(says(refusal("[]"), {"a.json", "no text in it"}));
  EXPECT_TRUE(says(refusal("{\"text\": \"a\"}\n{\"text\": \"b\"}\n"), {"a.json", "without an array", ".jsonl"}));
  EXPECT_TRUE(says(refusal("{\"rows\": [{\"text\": \"a\"}]}\n{}\n"), {"a.json:2", "goes on", ".jsonl"}));
  EXPECT_TRUE(says(refusal("{\"a\": [{\"text\": \"a\"}], \"b\": []}"), {"a.json:1", "second array"}));
  EXPECT_TRUE(says(refusal("[\"a\"]"), {"a.json: element 1", "is a string", "objects"}));
  EXPECT_TRUE(says(refusal("[{\"text\": \"a\"},\n{\"text\" \"b\"}]"), {"a.json: element 2, byte 9", "not valid JSON"}));
  EXPECT_TRUE(says(refusal("[{\"text\": \"a\"}\n{\"text\": \"b\"}]"), {"a.json:2", "',' or ']'"}));
  EXPECT_TRUE(says(refusal("[{\"text\": \"a\"]}"), {"a.json", "not valid JSON"}));
  EXPECT_TRUE(says(refusal("5"), {"a.json:1", "neither an array nor an object"}));
  EXPECT_TRUE(says(refusal(std::string(1000000, '[')), {"a.json", "cut short"}));
}

}  // namespace
}  // namespace sextant
