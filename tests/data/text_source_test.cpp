#include "data/text_source.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <array>

#include "data/scratch_folder.h"
#include "data/token_file.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;
using Documents = std::vector<std::string>;

std::string gzip(std::string_view text) {
  z_stream state{};
  deflateInit2(&state, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&state, text.size()), '\0');
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  state.avail_in = static_cast<uInt>(text.size());
  state.next_out = reinterpret_cast<Bytef*>(out.data());
  state.avail_out = static_cast<uInt>(out.size());
  deflate(&state, Z_FINISH);
  out.resize(state.total_out);
  deflateEnd(&state);
  return out;
}

std::string zstd(std::string_view text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

Documents read_all(std::vector<fs::path> paths, const TextOptions& options = {}) {
  Documents documents;
  for_each_document(paths, options, [&](std::string_view document) { documents.emplace_back(document); });
  return documents;
}

std::string complaint_about(const fs::path& path, const TextOptions& options = {}) {
  return complaint_of([&] { read_all({path}, options); });
}

TEST(PlainText, IsCutAtSeparatorsAndKeepsEveryByteBetween) {
  ScratchFolder folder;
  auto path = folder.write("a.txt",
                           "one\ntwo\n<|endoftext|>\nthree\n\n<|endoftext|>four<|endoftext|>\r\nfive\r\n"
                           "<|endoftext|>\n<|endoftext|>six\n");
  // A part that has only line breaks is no document.
  EXPECT_EQ(read_all({path}), (Documents{"one\ntwo\n", "\nthree\n\n", "four", "\r\nfive\r\n", "six\n"}));
  EXPECT_EQ(read_all({folder.write("b.txt", "one<|endoftext|>\n  two\n<|endoftext|>\n")}),
            (Documents{"one", "\n  two\n"}));
}

// The documents with the separators between them are the file.
TEST(PlainText, NoByteIsLost) {
  ScratchFolder folder;
  const std::string end = "<|endoftext|>";
  for (const char* gap : {"", "\n", "\r\n", "\n\n", " ", "\n \n"}) {
    std::string whole, joined;
    for (int i = 0; i < 4; ++i) whole += fmt::format("{}text {}{}{}", gap, i, gap, i < 3 ? end : "");
    for (const std::string& document : read_all({folder.write("a.txt", whole)}))
      joined += (joined.empty() ? "" : end) + document;
    EXPECT_EQ(joined, whole) << testing::PrintToString(gap);
  }
}

TEST(PlainText, OtherSeparators) {
  ScratchFolder folder;
  auto path = folder.write("a.txt", "one\nstill one\n\ntwo\n\n\nthree");
  EXPECT_EQ(read_all({path}), (Documents{"one\nstill one\n\ntwo\n\n\nthree"}));
  EXPECT_EQ(read_all({path}, {.separator = ""}), (Documents{"one\nstill one\n\ntwo\n\n\nthree"}));
  EXPECT_EQ(read_all({path}, {.separator = "\n\n"}), (Documents{"one\nstill one", "two", "\nthree"}));
}

// Documents of many sizes, so that separators fall across the edges of what is read at once.
TEST(PlainText, LongFilesComeBackWhole) {
  ScratchFolder folder;
  Documents expected;
  std::string all;
  for (size_t i = 0; all.size() < (size_t{5} << 20); ++i) {
    expected.push_back(std::string(1 + i * 7919 % 300000, static_cast<char>('a' + i % 26)) + "<|endof");
    all += expected.back() + "<|endoftext|>";
  }
  EXPECT_EQ(read_all({folder.write("long.txt", all)}), expected);
  EXPECT_EQ(read_all({folder.write("long.txt.gz", gzip(all))}), expected);
  EXPECT_EQ(read_all({folder.write("long.txt.zst", zstd(all))}), expected);
}

TEST(PlainText, DocumentOverTheLimitIsRefused) {
  ScratchFolder folder;
  TextOptions options{.max_document_bytes = 10};
  EXPECT_EQ(complaint_about(folder.write("a.txt", "0123456789<|endoftext|>0123456789"), options), "");
  EXPECT_TRUE(says(complaint_about(folder.write("a.txt", "short<|endoftext|>0123456789a"), options),
                   {"a.txt: document 2: no document ends within 10 bytes"}));
}

TEST(Jsonl, TakesTheKeyOfEveryLine) {
  ScratchFolder folder;
  auto path = folder.write("a.jsonl",
                           "{\"id\": 1, \"text\": \"caf\\u00e9 \\n \\ud83d\\ude00\", \"meta\": {\"text\": \"inner\"}}\n"
                           "\n"
                           "{\"meta\": [{\"text\": 3}], \"text\": \"two\"}\r\n"
                           "{\"text\": \"\"}\n"
                           "{\"text\": \"three\"}");
  EXPECT_EQ(read_all({path}), (Documents{"caf\xc3\xa9 \n \xf0\x9f\x98\x80", "two", "three"}));
  EXPECT_EQ(read_all({folder.write("b.jsonl", "{\"text\": 1, \"body\": \"x\"}\n")}, {.text_key = "body"}),
            (Documents{"x"}));
}

TEST(Jsonl, EveryFaultNamesFileAndLine) {
  ScratchFolder folder;
  auto complaint = [&](std::string_view second_line) {
    return complaint_about(folder.write("bad.jsonl", fmt::format("{{\"text\": \"good\"}}\n{}\n", second_line)));
  };
  EXPECT_TRUE(says(complaint("{\"text\": \"x\""), {"bad.jsonl:2:13: the line is cut short; expected ',' or '}'"}));
  EXPECT_TRUE(says(complaint("{\"text\": x}"), {"bad.jsonl:2:10: the line is not valid JSON; expected a value"}));
  EXPECT_TRUE(says(complaint("{\"text\": \"ab\xff\"}"), {"bad.jsonl:2:13: ", "expected UTF-8"}));
  EXPECT_TRUE(says(complaint("{\"text\": \"a\"} tail"), {"bad.jsonl:2:15: ", "the end of the line"}));
  EXPECT_TRUE(says(complaint("{\"body\": \"x\", \"id\": 1}"), {"bad.jsonl:2: ", "no key \"text\"", "body, id"}));
  EXPECT_TRUE(says(complaint("{}"), {"bad.jsonl:2: ", "no key \"text\""}));
  EXPECT_TRUE(says(complaint("{\"text\": 5}"), {"bad.jsonl:2: ", "key \"text\" holds a number", "expected a string"}));
  EXPECT_TRUE(says(complaint("{\"text\": null}"), {"bad.jsonl:2: ", "holds null"}));
  EXPECT_TRUE(says(complaint("{\"text\": [\"a\"]}"), {"bad.jsonl:2: ", "holds an array"}));
  EXPECT_TRUE(says(complaint("{\"text\": {\"text\": \"a\"}}"), {"bad.jsonl:2: ", "holds an object"}));
  EXPECT_TRUE(says(complaint("[\"text\"]"), {"bad.jsonl:2: ", "the line is an array", "a JSON object"}));
  EXPECT_TRUE(says(complaint("\"text\""), {"bad.jsonl:2: ", "the line is a string"}));
  EXPECT_TRUE(says(complaint("{\"text\": \"a\", \"text\": \"b\"}"), {"bad.jsonl:2: ", "twice"}));
}

TEST(Jsonl, DeepNestingNeedsNoStack) {
  ScratchFolder folder;
  std::string deep(1000000, '[');
  EXPECT_TRUE(says(complaint_about(folder.write("deep.jsonl", deep)), {"deep.jsonl:1:1000001: the line is cut short"}));
}

TEST(Compressed, MembersFollowOneAnother) {
  ScratchFolder folder;
  std::string one = "{\"text\": \"one\"}\n", two = "{\"text\": \"two\"}\n";
  EXPECT_EQ(read_all({folder.write("a.jsonl.gz", gzip(one) + gzip(two))}), (Documents{"one", "two"}));
  EXPECT_EQ(read_all({folder.write("a.jsonl.zst", zstd(one) + zstd(two))}), (Documents{"one", "two"}));
}

TEST(Compressed, CutOrDamagedStreamsAreRefusedAtEveryByte) {
  ScratchFolder folder;
  const std::string text = "{\"text\": \"one\"}\n{\"text\": \"two and a half\"}\n";
  for (auto [name, whole] : {std::pair{"a.jsonl.gz", gzip(text)}, std::pair{"a.jsonl.zst", zstd(text)}}) {
    for (size_t kept = 1; kept < whole.size(); ++kept)  // of nothing at all, EmptyOnesAreNamed
      EXPECT_TRUE(says(complaint_about(folder.write(name, std::string_view(whole).substr(0, kept))),
                       {name, ":", "cut short at compressed byte " + std::to_string(kept)}))
          << kept;
    EXPECT_TRUE(says(complaint_about(folder.write(name, "plain text under a false name")), {name, "damaged"}));
    EXPECT_TRUE(says(complaint_about(folder.write(name, whole + "plain text after the end")), {name, "damaged"}));
  }
  std::string crc = gzip(text);
  crc[crc.size() - 6] ^= 1;
  EXPECT_TRUE(says(complaint_about(folder.write("a.jsonl.gz", crc)), {"a.jsonl.gz:", "damaged", "data check"}));
}

TEST(Compressed, ZerosAfterTheLastGzipMemberAreNoData) {
  ScratchFolder folder;
  std::string text = "{\"text\": \"one\"}\n";
  for (size_t zeros : {1, 511, 600'000})  // the last is more than one read
    EXPECT_EQ(read_all({folder.write("a.jsonl.gz", gzip(text) + gzip(text) + std::string(zeros, '\0'))}),
              (Documents{"one", "one"}));
  EXPECT_TRUE(says(complaint_about(folder.write("a.jsonl.gz", gzip(text) + std::string(7, '\0') + "x")),
                   {"a.jsonl.gz", "damaged", fmt::format("byte {}", gzip(text).size() + 7), "zeros"}));
  EXPECT_TRUE(says(complaint_about(folder.write("a.jsonl.gz", std::string(512, '\0'))), {"a.jsonl.gz", "damaged"}));
}

// zstd --long=WINDOW_LOG of a stream whose length is not known beforehand.
std::string zstd_long(std::string_view text, int window_log) {
  std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> state(ZSTD_createCCtx(), ZSTD_freeCCtx);
  ZSTD_CCtx_setParameter(state.get(), ZSTD_c_windowLog, window_log);
  ZSTD_CCtx_setParameter(state.get(), ZSTD_c_contentSizeFlag, 0);
  std::string out(ZSTD_compressBound(text.size()) + 64, '\0');
  ZSTD_outBuffer to{out.data(), out.size(), 0};
  ZSTD_inBuffer from{text.data(), text.size(), 0};
  ZSTD_compressStream2(state.get(), &to, &from, ZSTD_e_flush);
  ZSTD_compressStream2(state.get(), &to, &from, ZSTD_e_end);
  out.resize(to.pos);
  return out;
}

TEST(Compressed, LongZstdWindows) {
  ScratchFolder folder;
  EXPECT_EQ(read_all({folder.write("long.txt.zst", zstd_long("some text", 28))}), (Documents{"some text"}));
  // A frame's header: the magic number, no flags, and a window of 2^41 bytes.
  std::string huge = std::string("\x28\xb5\x2f\xfd\x00\xf8", 6) + std::string(64, '\0');
  std::string complaint = complaint_about(folder.write("huge.txt.zst", huge));
  EXPECT_TRUE(says(complaint, {"huge.txt.zst", "a window over 2.00 GiB", "--long=31"}));
  EXPECT_EQ(complaint.find("damaged"), std::string::npos) << complaint;
}

TEST(Files, FoldersAreReadSortedAndOtherFilesLeft) {
  ScratchFolder folder;
  folder.write("set/b.txt", "b");
  folder.write("set/a/z.jsonl", "{\"text\": \"z\"}");
  folder.write("set/c.txt.gz", gzip("c"));
  folder.write("set/readme.md", "not data");
  auto extra = folder.write("0.txt", "last");
  EXPECT_EQ(read_all({folder / "set", extra}), (Documents{"z", "b", "c", "last"}));
}

TEST(Files, HiddenOnesOfAFolderAreLeftOutAndNamed) {
  ScratchFolder folder;
  folder.write("set/a.txt", "a");
  folder.write("set/b/c.txt", "c");
  folder.write("set/.hidden.txt", "no");
  folder.write("set/.ipynb_checkpoints/a-checkpoint.txt", "no");
  folder.write("set/b/.git/deep/d.txt", "no");
  folder.write("set/d.txt", "d");
  folder.write("set/.gitattributes", "no text file");
  EXPECT_EQ(read_all({folder / "set"}), (Documents{"a", "c", "d"}));
  std::vector<fs::path> set{folder / "set"};
  EXPECT_TRUE(says(list_text_files(set, nullptr).hidden_text(),
                   {"3 hidden files are left out: ", ".hidden.txt", ".ipynb_checkpoints/a-checkpoint.txt", "d.txt"}));
  EXPECT_EQ(read_all({folder / "set/.hidden.txt"}), (Documents{"no"}));  // named itself
  EXPECT_EQ(read_all({folder / "set/.ipynb_checkpoints"}), (Documents{"no"}));
  folder.write("only/.a.txt", "no");
  EXPECT_TRUE(says(complaint_about(folder / "only"), {"no text file", "hidden files are left out", "name the file"}));
}

TEST(Files, NamesOfTheHubAreToldFromFiles) {
  for (const char* name : {"wikitext", "roneneldan/TinyStories", "owner/stories-v0.3", "owner/set2.5"})
    EXPECT_TRUE(says(complaint_about(name), {"file not found", "nothing is downloaded",
                                             fmt::format("hf download {} --repo-type dataset", name)}));
  for (const char* file : {"nowhere.txt", "notes.md", "texts/notes.md", "book.epub", "set.v2/a.log", "weights.gguf"})
    EXPECT_EQ(complaint_about(file).find("downloaded"), std::string::npos) << file;
  EXPECT_TRUE(says(complaint_of([] { open_token_file("wikitext"); }), {"file not found", "nothing is downloaded"}));
}

TEST(Files, WhatCannotBeTextIsRefused) {
  ScratchFolder folder;
  fs::create_directories(folder / "empty");
  EXPECT_TRUE(says(complaint_about(folder / "nowhere.txt"), {"nowhere.txt", "file not found"}));
  EXPECT_TRUE(says(complaint_about(folder / "empty"), {"empty", "holds no text file", ".jsonl"}));
  EXPECT_TRUE(says(complaint_about(folder.write("train.bin", "ab")), {"train.bin", "the name does not say"}));
  EXPECT_EQ(read_all({folder / "train.bin"}, {.format = &kPlainText}), (Documents{"ab"}));
  EXPECT_TRUE(says(complaint_of([] { read_all({}); }), {"no text file"}));
}

TEST(Files, EmptyOnesAreNamed) {
  ScratchFolder folder;
  fs::path good = folder.write("good.txt", "text"), empty = folder.write("empty.txt", "");
  EXPECT_TRUE(says(complaint_about(empty), {"empty.txt: the file is empty"}));
  EXPECT_TRUE(says(complaint_of([&] { read_all({good, empty}); }), {"empty.txt: the file is empty"}));
  EXPECT_TRUE(says(complaint_about(folder.write("blank.jsonl", "\n\n")), {"blank.jsonl", "no text in it"}));
  EXPECT_TRUE(says(complaint_about(folder.write("none.txt.gz", gzip(""))), {"none.txt.gz", "no text in it"}));
  folder.write("shards/0.txt", "");
  EXPECT_TRUE(says(complaint_about(folder / "shards"), {"shards", "no text in it"}));
  folder.write("shards/1.txt", "one");
  EXPECT_EQ(read_all({folder / "shards"}), (Documents{"one"}));
}

TEST(Files, OfOtherKindsAreNamedWithTheWayToConvertThem) {
  ScratchFolder folder;
  for (auto [name, what, how] : std::initializer_list<std::tuple<const char*, const char*, const char*>>{
           {"a.npy", "a NumPy array", "tofile"},
           {"a.pkl", "pickle", "JSON lines: {\"text\""},
           {"a.PKL", "pickle", "JSON lines: {\"text\""},
           {"a.zip", "an archive", "unpack"},
           {"a.tar.gz", "an archive", "unpack"},
           {"a.txt.bz2", "compressed", ".zst"},
           {"a.md", "text under another name", "data.format = \"text\""}}) {
    fs::path path = folder.write(name, "some content");
    EXPECT_TRUE(says(complaint_about(path), {name, what, "which is not read", ".jsonl", how})) << name;
    EXPECT_TRUE(says(complaint_of([&] { open_token_file(path); }), {name, what, "which is not read", ".bin", how}))
        << name;
  }
  EXPECT_EQ(read_all({folder / "a.md"}, {.format = &kPlainText}), (Documents{"some content"}));
  EXPECT_EQ(open_token_file(folder / "a.npy", {.type = TokenType::u16}).token_count(), 6);
  folder.write("arrays/part-0.npy", "x");
  EXPECT_TRUE(
      says(complaint_about(folder / "arrays"), {"arrays", "no text file", "part-0.npy", "a NumPy array", "tofile"}));
}

TEST(Files, SizesAndPlaces) {
  ScratchFolder folder;
  std::array<fs::path, 2> paths{folder.write("a.jsonl", "\n{\"text\": \"a\"}\n"), folder.write("b.txt", "b")};
  DocumentReader reader(paths);
  EXPECT_EQ(reader.bytes_total(), 16);
  ASSERT_EQ(reader.next(), "a");
  EXPECT_TRUE(reader.place().ends_with("a.jsonl:2"));
  ASSERT_EQ(reader.next(), "b");
  EXPECT_TRUE(reader.place().ends_with("b.txt: document 1"));
  EXPECT_EQ(reader.next(), std::nullopt);
  EXPECT_EQ(reader.next(), std::nullopt);
}

}  // namespace
}  // namespace sextant
