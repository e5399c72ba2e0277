#include "data/token_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "data/scratch_folder.h"
#include "data/token_writer.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

// The bytes of values, written without the code under test.
template <class T>
std::string raw(std::initializer_list<T> values) {
  std::string out;
  for (T value : values)
    for (size_t byte = 0; byte < sizeof(T); ++byte)
      out += static_cast<char>(static_cast<uint64_t>(value) >> (8 * byte) & 0xFF);
  return out;
}

std::vector<int32_t> read_all(const TokenFile& file) {
  std::vector<int32_t> ids(static_cast<size_t>(file.token_count()));
  file.read(0, ids);
  return ids;
}

std::string complaint_about(const fs::path& path, TokenFileOptions options = {}) {
  return complaint_of([&] { read_all(open_token_file(path, options)); });
}

TEST(FlatTokens, TypeComesFromTheNameOrTheOption) {
  ScratchFolder folder;
  TokenFile bin = open_token_file(folder.write("train.bin", raw<uint16_t>({1, 50256, 65535})));
  EXPECT_EQ(read_all(bin), (std::vector<int32_t>{1, 50256, 65535}));
  EXPECT_EQ(bin.kind(), TokenKind::flat);
  EXPECT_EQ(bin.type(), TokenType::u16);
  EXPECT_EQ(bin.document_count(), std::nullopt);
  std::vector<int32_t> one(1);
  bin.read(1, one);
  EXPECT_EQ(one[0], 50256);

  EXPECT_EQ(read_all(open_token_file(folder.write("a.u32", raw<uint32_t>({7, 128255})))),
            (std::vector<int32_t>{7, 128255}));
  EXPECT_EQ(read_all(open_token_file(folder.write("b.bin", raw<uint32_t>({7, 128255})), {.type = TokenType::u32})),
            (std::vector<int32_t>{7, 128255}));
  EXPECT_EQ(read_all(open_token_file(folder.write("c.data", raw<uint8_t>({0, 255})), {.type = TokenType::u8})),
            (std::vector<int32_t>{0, 255}));
  EXPECT_EQ(open_token_file(folder.write("empty.bin", "")).token_count(), 0);
}

TEST(FlatTokens, WhatCannotBeTokensIsRefused) {
  ScratchFolder folder;
  EXPECT_TRUE(says(complaint_about(folder / "nowhere.bin"), {"nowhere.bin", "file not found"}));
  EXPECT_TRUE(says(complaint_about(folder.write("odd.bin", "abc")), {"odd.bin at byte 2", "3 bytes", "multiple of 2"}));
  EXPECT_TRUE(says(complaint_about(folder.write("a.dat", "ab")), {"a.dat", "the name does not say", ".u32"}));
  EXPECT_TRUE(says(complaint_about(folder.write("n.data", raw<int32_t>({1, 2, -1})), {.type = TokenType::i32}),
                   {"n.data at byte 8 (token 2)", "is not a token id"}));
  EXPECT_TRUE(says(complaint_about(folder.write("n.u32", raw<uint32_t>({1, 0x80000000}))),
                   {"n.u32 at byte 4 (token 1)", "is not a token id"}));
  EXPECT_TRUE(
      says(complaint_about(folder.write("w.data", raw<int64_t>({5, int64_t{1} << 32})), {.type = TokenType::i64}),
           {"w.data at byte 8 (token 1)", "is not a token id"}));
}

TEST(FlatTokens, U32UnderTheNameOfU16IsNoticed) {
  ScratchFolder folder;
  std::string small, wide, narrow;
  for (uint32_t i = 0; i < 100; ++i) {
    small += raw<uint32_t>({i % 60});
    wide += raw<uint32_t>({i * 1280});
    narrow += raw<uint16_t>({static_cast<uint16_t>(i * 500), static_cast<uint16_t>(i * 7)});
  }
  EXPECT_TRUE(says(complaint_about(folder.write("small.bin", small)), {"small.bin", "looks like u32"}));
  EXPECT_TRUE(says(complaint_about(folder.write("wide.bin", wide)), {"wide.bin", "looks like u32"}));
  EXPECT_EQ(complaint_about(folder / "wide.bin", {.type = TokenType::u32}), "");
  EXPECT_EQ(complaint_about(folder.write("narrow.bin", narrow)), "");

  // Stated, too; and nothing is said about u16 that is u16.
  constexpr TokenFileOptions kStated{TokenKind::flat, TokenType::u16};
  for (const char* name : {"small.bin", "wide.bin"})
    EXPECT_TRUE(says(complaint_about(folder / name, kStated), {name, "as in a file of u32", "tokens-u32"}));
  EXPECT_TRUE(says(complaint_about(folder.write("small.u16", small)), {"small.u16", "as in a file of u32"}));
  EXPECT_EQ(complaint_about(folder / "narrow.bin", kStated), "");
  std::string zeros(4096, '\0'), counted, bytes;
  for (uint32_t i = 0; i < 5000; ++i) {
    counted += raw<uint16_t>({static_cast<uint16_t>(i % 50)});
    bytes += raw<uint16_t>({static_cast<uint16_t>((i * 2654435761u) >> 24)});
  }
  for (const std::string& good : {zeros, counted, bytes})
    EXPECT_EQ(complaint_about(folder.write("good.bin", good), kStated), "");
}

// A file of text whose name says nothing.
TEST(FlatTokens, TextWithoutAnExtensionIsRecognised) {
  ScratchFolder folder;
  EXPECT_TRUE(says(complaint_about(folder.write("corpus", "A plain text, with \xc3\xa4.\n")),
                   {"corpus", "looks like text", ".txt", ".jsonl", "data.format = \"text\""}));
  EXPECT_TRUE(says(complaint_about(folder.write("lines", "{\"text\": \"a\"}\n")),
                   {"lines", "looks like JSON lines", "data.format = \"jsonl\""}));
  EXPECT_TRUE(says(complaint_about(folder.write("array", "[\n {\"text\": \"a\"}]\n")),
                   {"array", "looks like an array of JSON", "name it .json"}));
  EXPECT_TRUE(says(complaint_about(folder.write("nothing", "")), {"nothing", "the file is empty"}));
  // Cut within a character by the end of what is looked at.
  EXPECT_TRUE(says(complaint_about(folder.write("long", std::string(4095, 'x') + "\xc3\xa4 and more")),
                   {"long", "looks like text"}));
  EXPECT_TRUE(says(complaint_about(folder.write("ids", raw<uint16_t>({500, 50256, 7}))),
                   {"ids", "does not say what kind of file this is; expected", ".txt", "\"tokens-u16\""}));
}

TEST(FlatTokens, WhatAHeaderOrAnIndexSaysIsNotOverruled) {
  ScratchFolder folder;
  constexpr TokenFileOptions kStated{TokenKind::flat, TokenType::u16};
  std::string header = raw<int32_t>({20240520, 1, 2});
  header.resize(1024);
  EXPECT_TRUE(says(complaint_about(folder.write("a.bin", header + raw<uint16_t>({1, 2})), kStated),
                   {"a.bin at byte 0", "a header of llm.c", "leave data.format out"}));
  EXPECT_TRUE(says(complaint_about(folder.write("n.npy", "\x93NUMPY" + std::string(122, ' ')), kStated),
                   {"n.npy at byte 0", "a NumPy array", "tofile"}));
  TokenWriter writer(folder / "m", {TokenKind::megatron, TokenType::i32});
  writer.append_document(std::vector<int32_t>{70000, 5, 9});
  writer.finish();
  EXPECT_TRUE(says(complaint_about(folder / "m.bin", kStated), {"m.bin", "m.idx says that its tokens are i32"}));
}

TEST(FlatTokens, VocabularyIsCheckedWithThePlace) {
  ScratchFolder folder;
  TokenFile file = open_token_file(folder.write("train.bin", raw<uint16_t>({1, 99, 100, 200})));
  EXPECT_EQ(complaint_of([&] { file.check_vocab(201); }), "");
  EXPECT_TRUE(says(complaint_of([&] { file.check_vocab(100); }),
                   {"train.bin at byte 4 (token 2)", "token id 100", "below 100"}));
}

std::string llmc_header(int32_t magic, int32_t version, int32_t tokens) {
  std::string header = raw<int32_t>({magic, version, tokens});
  header.resize(1024);
  return header;
}

TEST(LlmcTokens, BothHeaders) {
  ScratchFolder folder;
  TokenFile gpt2 = open_token_file(folder.write("a.bin", llmc_header(20240520, 1, 3) + raw<uint16_t>({1, 2, 50256})));
  EXPECT_EQ(gpt2.kind(), TokenKind::llmc);
  EXPECT_EQ(read_all(gpt2), (std::vector<int32_t>{1, 2, 50256}));
  EXPECT_TRUE(gpt2.place_of(1).ends_with("at byte 1026 (token 1)"));
  TokenFile llama = open_token_file(folder.write("b.bin", llmc_header(20240801, 7, 2) + raw<uint32_t>({5, 128000})));
  EXPECT_EQ(llama.type(), TokenType::u32);
  EXPECT_EQ(read_all(llama), (std::vector<int32_t>{5, 128000}));
}

TEST(LlmcTokens, FaultsNameTheByte) {
  ScratchFolder folder;
  auto complaint = [&](const std::string& bytes) { return complaint_about(folder.write("a.bin", bytes)); };
  std::string two = raw<uint16_t>({1, 2});
  EXPECT_TRUE(says(complaint(llmc_header(20240520, 2, 2) + two), {"a.bin at byte 4", "version 2", "version 1"}));
  EXPECT_TRUE(says(complaint(llmc_header(20240520, 1, 3) + two), {"a.bin at byte 8", "3 tokens", "4 bytes"}));
  EXPECT_TRUE(says(complaint(llmc_header(20240520, 1, -1) + two), {"a.bin at byte 8", "4294967295 tokens"}));
  EXPECT_TRUE(says(complaint(llmc_header(20240520, 1, 2) + two + "x"), {"a.bin at byte 8", "5 bytes"}));
  EXPECT_TRUE(says(complaint(raw<int32_t>({20240520, 1})), {"a.bin at byte 0", "cut short after 8 bytes"}));
  EXPECT_TRUE(says(complaint(llmc_header(20240326, 3, 1024)), {"a.bin at byte 0", "model weights"}));
  EXPECT_TRUE(says(complaint(llmc_header(20240522, 1, 10)), {"a.bin at byte 0", "evaluation examples"}));
  EXPECT_TRUE(
      says(complaint_about(folder.write("b.bin", two), {.kind = TokenKind::llmc}), {"b.bin at byte 0", "magic"}));
}

// Three sequences of 2, 1 and 3 u16 tokens in two documents, laid out by hand.
struct HandMadeIndex {
  std::string magic{"MMIDIDX\0\0", 9};
  std::string version = raw<uint64_t>({1});
  std::string code = raw<uint8_t>({8});
  std::string counts = raw<uint64_t>({3, 3});
  std::string lengths = raw<int32_t>({2, 1, 3});
  std::string offsets = raw<int64_t>({0, 4, 6});
  std::string boundaries = raw<int64_t>({0, 1, 3});
  std::string tail;
  std::string bin = raw<uint16_t>({10, 11, 20, 30, 31, 32});

  std::string idx() const { return magic + version + code + counts + lengths + offsets + boundaries + tail; }
};

TEST(MegatronTokens, HandMadePair) {
  ScratchFolder folder;
  HandMadeIndex made;
  folder.write("set_v1.5.idx", made.idx());
  folder.write("set_v1.5.bin", made.bin);
  for (const char* name : {"set_v1.5.idx", "set_v1.5.bin", "set_v1.5"}) {
    TokenFile file = open_token_file(folder / name);
    EXPECT_EQ(file.kind(), TokenKind::megatron);
    EXPECT_EQ(file.type(), TokenType::u16);
    EXPECT_EQ(read_all(file), (std::vector<int32_t>{10, 11, 20, 30, 31, 32}));
    ASSERT_EQ(file.document_count(), 2);
    EXPECT_EQ(file.document_begin(0), 0);
    EXPECT_EQ(file.document_begin(1), 2);
    EXPECT_EQ(file.document_begin(2), 6);
  }
  EXPECT_EQ(open_token_file(folder / "set_v1.5.bin", {.kind = TokenKind::flat}).document_count(), std::nullopt);
  EXPECT_TRUE(says(complaint_about(folder / "set_v1.5.bin", {.type = TokenType::i32}), {"tokens are u16", "i32"}));
}

TEST(MegatronTokens, EveryFaultNamesTheByte) {
  ScratchFolder folder;
  auto complaint = [&](auto change) {
    HandMadeIndex made;
    change(made);
    folder.write("a.idx", made.idx());
    folder.write("a.bin", made.bin);
    return complaint_about(folder / "a.bin");
  };
  using H = HandMadeIndex;
  EXPECT_EQ(complaint([](H&) {}), "");
  EXPECT_TRUE(says(complaint([](H& h) { h.magic[0] = 'X'; }), {"a.idx at byte 0", "magic"}));
  EXPECT_TRUE(says(complaint([](H& h) { h.magic = "TNTIDX"; }), {"a.idx at byte 0", "TNTIDX"}));
  EXPECT_TRUE(says(complaint([](H& h) { h.version = raw<uint64_t>({2}); }), {"a.idx at byte 9", "version 2"}));
  EXPECT_TRUE(says(complaint([](H& h) { h.code = raw<uint8_t>({6}); }), {"byte 17", "code 6", "floating-point"}));
  EXPECT_TRUE(says(complaint([](H& h) { h.code = raw<uint8_t>({7}); }), {"byte 17", "code 7", "floating-point"}));
  EXPECT_TRUE(says(complaint([](H& h) { h.code = raw<uint8_t>({9}); }), {"byte 17", "code 9", "8 (u16)"}));
  EXPECT_TRUE(says(complaint([](H& h) { h.counts = raw<uint64_t>({4, 3}); }), {"byte 18", "4 sequences"}));
  EXPECT_TRUE(says(complaint([](H& h) { h.counts = raw<uint64_t>({~uint64_t{0}, 3}); }), {"byte 18", "sequences"}));
  EXPECT_TRUE(says(complaint([](H& h) { h.counts = raw<uint64_t>({3, uint64_t{1} << 61}); }), {"byte 18"}));
  EXPECT_TRUE(says(complaint([](H& h) { h.lengths = raw<int32_t>({2, -1, 3}); }), {"byte 38", "-1 tokens"}));
  EXPECT_TRUE(says(complaint([](H& h) { h.lengths = raw<int32_t>({2, 1, 4}); }), {"byte 42", "has 12 bytes"}));
  EXPECT_TRUE(says(complaint([](H& h) { h.lengths = raw<int32_t>({2, 1, 2}); }), {"byte 34", "which has 12"}));
  EXPECT_TRUE(says(complaint([](H& h) { h.offsets = raw<int64_t>({0, 6, 4}); }), {"byte 54", "byte 6", "byte 4"}));
  EXPECT_TRUE(says(complaint([](H& h) { h.offsets = raw<int64_t>({-2, 4, 6}); }), {"byte 46", "byte -2"}));
  EXPECT_TRUE(says(complaint([](H& h) { h.boundaries = raw<int64_t>({1, 1, 3}); }), {"byte 70", "sequence 1"}));
  EXPECT_TRUE(says(complaint([](H& h) { h.boundaries = raw<int64_t>({0, 4, 3}); }), {"byte 78", "from 0 to 3"}));
  EXPECT_TRUE(says(complaint([](H& h) { h.boundaries = raw<int64_t>({0, 2, 1}); }), {"byte 86", "from 2 to 3"}));
  EXPECT_TRUE(says(complaint([](H& h) { h.boundaries = raw<int64_t>({0, 1, 2}); }), {"byte 86", "sequence 2"}));
  EXPECT_TRUE(says(complaint([](H& h) { h.counts = raw<uint64_t>({3, 0}), h.boundaries = ""; }), {"byte 26"}));
  EXPECT_TRUE(says(complaint([](H& h) { h.tail = std::string(3, '\0'); }), {"byte 94", "multimodal"}));
  EXPECT_TRUE(says(complaint([](H& h) { h.tail = "x"; }), {"byte 94", "1 bytes after"}));
  EXPECT_TRUE(says(complaint([](H& h) { h.bin += "x"; }), {"byte 34", "which has 13"}));
  EXPECT_TRUE(says(complaint([](H& h) { h.bin.pop_back(); }), {"byte 42", "has 11 bytes"}));
  // Every shorter index is refused too, wherever it ends.
  for (size_t kept = 0; kept < HandMadeIndex().idx().size(); ++kept) {
    folder.write("a.idx", HandMadeIndex().idx().substr(0, kept));
    EXPECT_TRUE(says(complaint_about(folder / "a.idx"), {"a.idx at byte"})) << kept;
  }
  fs::remove(folder / "a.bin");
  EXPECT_TRUE(says(complaint_about(folder / "a.idx"), {"a.bin", "file not found"}));
}

TEST(TokenFile, CutShortWhileInUseIsAnErrorThatNamesIt) {
  ScratchFolder folder;
  TokenFile file = open_token_file(folder.write("train.bin", std::string(100'000, '\1')));
  std::vector<int32_t> ids(4);
  file.read(49'990, ids);
  for (uintmax_t left : {99'990, 8}) {  // in the last page, which would read as zeros, and by whole pages
    fs::resize_file(folder / "train.bin", left);
    try {
      file.read(49'996, ids);
      FAIL() << "read " << ids[0];
    } catch (const RunError& error) {
      EXPECT_TRUE(
          says(error.what(), {"train.bin", "cut short while it was in use", fmt::format("{} bytes", left), "100000"}));
    }
  }
}

TEST(MegatronTokens, ABinThatIsCutShortIsRefused) {
  ScratchFolder folder;
  TokenWriter writer(folder / "a", {.kind = TokenKind::megatron, .type = TokenType::u16});
  for (int i = 0; i < 10; ++i) writer.append_document(std::vector<int32_t>(100, i));
  writer.finish();
  for (uintmax_t left : {1998, 1001, 0}) {
    fs::resize_file(folder / "a.bin", left);
    for (const char* name : {"a.bin", "a.idx"})
      EXPECT_TRUE(says(complaint_about(folder / name), {"a.idx at byte", "which has " + std::to_string(left)})) << left;
  }
}

TEST(TokenWriter, RoundTripsInEveryType) {
  ScratchFolder folder;
  std::vector<int32_t> longest(200000);
  std::iota(longest.begin(), longest.end(), 0);
  for (TokenKind kind : {TokenKind::flat, TokenKind::megatron}) {
    for (const char* name : {"u8", "i8", "i16", "u16", "i32", "u32", "i64"}) {
      TokenType type = *token_type_from_name(name);
      if (kind == TokenKind::megatron && type == TokenType::u32) continue;
      auto many = static_cast<size_t>(std::min<int64_t>(largest_id(type) + 1, std::ssize(longest)));
      std::vector<std::vector<int32_t>> documents{{3, 1, 2}, {}, {longest.begin(), longest.begin() + (int64_t)many}};
      TokenWriter writer(folder / "out.bin", {.kind = kind, .type = type, .end_of_text = 100});
      std::vector<int32_t> expected;
      for (const auto& document : documents) {
        writer.append_document(document);
        expected.insert(expected.end(), document.begin(), document.end());
        expected.push_back(100);
      }
      writer.finish();
      EXPECT_EQ(writer.token_count(), std::ssize(expected));
      EXPECT_EQ(writer.document_count(), 3);

      TokenFile file = open_token_file(folder / "out.bin", {.kind = kind, .type = type});
      EXPECT_EQ(read_all(file), expected) << name;
      if (kind == TokenKind::flat) continue;
      ASSERT_EQ(file.document_count(), 3);
      EXPECT_EQ(file.document_begin(1), 4);
      EXPECT_EQ(file.document_begin(2), 5);
      EXPECT_EQ(file.document_begin(3), std::ssize(expected));
    }
  }
}

TEST(TokenWriter, LlmcBytesAreAsPublished) {
  ScratchFolder folder;
  for (auto [type, header] : {std::pair{TokenType::u16, llmc_header(20240520, 1, 4)},
                              std::pair{TokenType::u32, llmc_header(20240801, 7, 4)}}) {
    TokenWriter writer(folder / "out.bin", {.kind = TokenKind::llmc, .type = type, .end_of_text = 9});
    for (std::vector<int32_t> document : {std::vector{10, 11}, {}}) writer.append_document(document);
    writer.finish();
    std::string tokens = type == TokenType::u16 ? raw<uint16_t>({10, 11, 9, 9}) : raw<uint32_t>({10, 11, 9, 9});
    EXPECT_EQ(read_file(folder / "out.bin"), header + tokens);
  }
  // Beyond llm.c's own count.
  std::vector<std::byte> large = sextant::llmc_header(TokenType::u32, (int64_t{1} << 33) + 5);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(large.data()), 16), raw<int32_t>({20240801, 7, 5, 2}));
  std::string said = complaint_of([&] { llmc_layout(large, "large.bin"); });
  EXPECT_TRUE(says(said, {"large.bin at byte 8", "8589934597 tokens"}));
}

// A file that is written without extra settings is read without extra settings.
TEST(TokenWriter, NamesAndVocabulariesGiveFilesThatSayWhatTheyAre) {
  ScratchFolder folder;
  for (auto [name, vocab] : {std::pair{"a.bin", 50257}, std::pair{"a.bin", 128256}, std::pair{"a.u32", 50257},
                             std::pair{"a.u32", 128256}, std::pair{"a.u16", 65536}, std::pair{"a.ds", 128256}}) {
    TokenFormat format = token_format_for(vocab, folder / name);
    TokenWriter writer(folder / name, {.kind = format.kind, .type = format.type});
    std::vector<int32_t> ids(1000);
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>((i * 7919) % static_cast<size_t>(vocab));
    writer.append_document(ids);
    writer.finish();
    EXPECT_EQ(read_all(open_token_file(folder / name)), ids) << name << " " << vocab;
  }
  EXPECT_EQ(token_format_for(50257, "a.bin").kind, TokenKind::flat);
  EXPECT_TRUE(says(complaint_of([] { token_format_for(128256, "a.u16"); }), {"a.u16", "the name says u16", "128256"}));
}

TEST(TokenWriter, MegatronBytesAreAsPublished) {
  ScratchFolder folder;
  TokenWriter writer(folder / "out", {.kind = TokenKind::megatron, .type = TokenType::u16});
  for (std::vector<int32_t> document : {std::vector{10, 11}, {20}, {30, 31, 32}}) writer.append_document(document);
  writer.finish();
  HandMadeIndex made;
  made.counts = raw<uint64_t>({3, 4});  // here every sequence is a document
  made.boundaries = raw<int64_t>({0, 1, 2, 3});
  EXPECT_EQ(read_file(folder / "out.idx"), made.idx());
  EXPECT_EQ(read_file(folder / "out.bin"), made.bin);
}

TEST(TokenWriter, NothingIsLeftWithoutFinish) {
  ScratchFolder folder;
  folder.write("out.bin", "old");
  {
    TokenWriter writer(folder / "out.bin", {.kind = TokenKind::megatron});
    writer.append_document(std::vector<int32_t>(100000, 7));
  }
  EXPECT_EQ(read_file(folder / "out.bin"), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST(TokenWriter, RefusesWhatTheFormatCannotHold) {
  ScratchFolder folder;
  TokenWriter writer(folder / "out.bin", {});
  EXPECT_TRUE(says(complaint_of([&] { writer.append_document(std::vector{1, 65536}); }), {"out.bin", "65536", "u16"}));
  EXPECT_TRUE(says(complaint_of([&] { writer.append_document(std::vector{-1}); }), {"out.bin", "-1"}));
  EXPECT_TRUE(says(complaint_of([&] { TokenWriter(folder / "m", {TokenKind::megatron, TokenType::u32}); }), {"u32"}));
  EXPECT_TRUE(says(complaint_of([&] {
                     TokenWriter(folder / "l.bin", {TokenKind::llmc, TokenType::i64});
                   }),
                   {"llm.c", "i64"}));
  EXPECT_THROW(TokenWriter(folder / "no" / "such" / "folder.bin", {}), RunError);
}

TEST(TokenWriter, TypesForVocabularies) {
  EXPECT_EQ(token_type_for(50257, TokenKind::flat), TokenType::u16);
  EXPECT_EQ(token_type_for(65536, TokenKind::flat), TokenType::u16);
  EXPECT_EQ(token_type_for(65537, TokenKind::flat), TokenType::u32);
  EXPECT_EQ(token_type_for(65499, TokenKind::megatron), TokenType::u16);
  EXPECT_EQ(token_type_for(65500, TokenKind::megatron), TokenType::i32);
}

}  // namespace
}  // namespace sextant
