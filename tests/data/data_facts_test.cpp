#include "data/data_facts.h"

#include <gtest/gtest.h>

#include "data/scratch_folder.h"
#include "data/token_writer.h"

namespace sextant {
namespace {

void write_documents(const std::filesystem::path& path, TokenKind kind) {
  TokenWriter writer(path, {.kind = kind, .type = TokenType::u16, .end_of_text = 9});
  for (std::vector<int32_t> document : {std::vector{1, 2, 3}, {4}, {500, 6, 7, 8}}) writer.append_document(document);
  writer.finish();
}

TEST(DataFacts, TokensWithAndWithoutMarks) {
  ScratchFolder folder;
  write_documents(folder / "flat.bin", TokenKind::flat);
  DataFacts flat = inspect_data(folder / "flat.bin");
  EXPECT_EQ(flat.kind, "flat tokens");
  EXPECT_EQ(flat.bytes_on_disk, 22);
  EXPECT_EQ(flat.type, TokenType::u16);
  EXPECT_EQ(flat.tokens, 11);
  EXPECT_EQ(flat.max_id, 500);
  EXPECT_EQ(flat.documents, std::nullopt);
  EXPECT_FALSE(flat.lengths);

  write_documents(folder / "pair", TokenKind::megatron);
  for (auto& [name, kind] : {std::pair{"flat.bin", "flat tokens"}, std::pair{"pair.idx", "Megatron tokens"}}) {
    DataFacts facts = inspect_data(folder / name, {.end_of_text = 9});
    EXPECT_EQ(facts.kind, kind);
    EXPECT_EQ(facts.documents, 3);
    ASSERT_TRUE(facts.lengths);
    EXPECT_EQ(facts.lengths->shortest, 2);
    EXPECT_EQ(facts.lengths->longest, 5);
    EXPECT_DOUBLE_EQ(facts.lengths->mean, 11 / 3.0);
  }
  EXPECT_EQ(inspect_data(folder / "flat.bin", {.end_of_text = 4}).documents, 2);  // the last one has no mark
}

TEST(DataFacts, EveryFormatHasSizesAndABeginning) {
  ScratchFolder folder;
  std::string lines, text;
  for (int i = 0; i < 20; ++i) {
    std::string document = "d\xc3\xa9" + std::string(static_cast<size_t>(i) * 20, 'x');
    lines += fmt::format("{{\"text\": \"{}\"}}\n", document);
    text += document + "<|endoftext|>";
  }
  for (const auto& [name, content] : {std::pair{"a/a.jsonl", lines}, std::pair{"a/a.txt", text}}) {
    std::filesystem::path path = folder.write(name, content);
    ASSERT_EQ(std::system(fmt::format("gzip -k {}", path.string()).c_str()), 0);
    for (const char* more : {"", ".gz"}) {
      DataFacts facts = inspect_data(path.string() + more);
      EXPECT_EQ(facts.kind.ends_with(", gzip"), *more != '\0') << facts.kind;
      EXPECT_EQ(facts.documents, 20);
      EXPECT_EQ(facts.text_bytes, 20 * 3 + 190 * 20);
      EXPECT_EQ(facts.lengths->longest, 3 + 19 * 20);
      EXPECT_EQ(facts.first_text, "d\xc3\xa9");
    }
  }
  EXPECT_EQ(inspect_data(folder / "a").documents, 80);  // the folder has both of both
  // Cut at a whole character.
  std::string accents;
  for (int i = 0; i < 150; ++i) accents += "\u00e9";
  EXPECT_EQ(inspect_data(folder.write("b.txt", "x" + accents)).first_text.size(), 199u);

  for (const auto& [name, kind] :
       {std::pair{"t.bin", TokenKind::flat}, std::pair{"t.u16", TokenKind::flat}, std::pair{"t.ds", TokenKind::flat},
        std::pair{"l.bin", TokenKind::llmc}, std::pair{"m", TokenKind::megatron}}) {
    write_documents(folder / name, kind);
    DataFacts facts = inspect_data(kind == TokenKind::megatron ? folder / "m.idx" : folder / name, {.end_of_text = 9});
    EXPECT_EQ(facts.documents, 3) << name;
    EXPECT_EQ(facts.tokens, 11) << name;
    EXPECT_EQ(facts.lengths->longest, 5) << name;
    EXPECT_EQ(facts.first_ids, (std::vector<int32_t>{1, 2, 3, 9, 4, 9, 500, 6, 7, 8, 9})) << name;
    EXPECT_FALSE(facts.text_bytes) << name;
  }
}

TEST(DataFacts, EmptyFile) {
  ScratchFolder folder;
  DataFacts facts = inspect_data(folder.write("empty.bin", ""), {.end_of_text = 0});
  EXPECT_EQ(facts.tokens, 0);
  EXPECT_EQ(facts.max_id, std::nullopt);
  EXPECT_EQ(facts.documents, 0);
  EXPECT_FALSE(facts.lengths);
}

TEST(DataFacts, Text) {
  ScratchFolder folder;
  DataFacts facts = inspect_data(folder.write("set/a.jsonl", "{\"text\": \"abc\"}\n{\"text\": \"d\"}\n"));
  EXPECT_EQ(facts.kind, "JSON lines");
  EXPECT_EQ(facts.documents, 2);
  EXPECT_EQ(facts.lengths->longest, 3);
  EXPECT_EQ(facts.tokens, std::nullopt);
  EXPECT_EQ(inspect_data(folder.write("set/b.txt", "abcde")).kind, "plain text");
  EXPECT_EQ(inspect_data(folder / "set").documents, 3);
  EXPECT_TRUE(says(complaint_of([&] { inspect_data(folder / "no.txt"); }), {"no.txt"}));
  EXPECT_TRUE(says(complaint_of([&] { inspect_data(folder / "no.bin"); }), {"no.bin"}));
}

}  // namespace
}  // namespace sextant
