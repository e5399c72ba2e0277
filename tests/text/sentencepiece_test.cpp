// tokenizer.model files against ids of the sentencepiece library, and files that are wrong; vocab.json with merges.txt.
#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "text/tokenizer.h"
#include "text/tokenizer_files.h"
#include "text/tokenizer_fixtures.h"

namespace sextant {
namespace {

using Ids = std::vector<uint32_t>;

class SentencePieceFile : public testing::TestWithParam<std::string> {};

TEST_P(SentencePieceFile, EncodesAMegabyteAsTheLibraryDoes) {
  Tokenizer tokenizer = Tokenizer::load(tokenizer_fixture("sentencepiece/" + GetParam() + ".model"));
  expect_ids_of_sample(tokenizer, expected_ids("sentencepiece/" + GetParam() + ".expected"));
  ASSERT_EQ(tokenizer.to_files().front().name, "tokenizer.model");
  Tokenizer again = Tokenizer::from_sentencepiece(tokenizer.to_files().front().content, "again");
  EXPECT_EQ(again.to_files(), tokenizer.to_files());
}

INSTANTIATE_TEST_SUITE_P(Tokenizer, SentencePieceFile, testing::Values("bpe", "unigram", "symbols"),
                         [](const auto& info) { return info.param; });

TEST(SentencePiece, BeginAndEndTokens) {
  Tokenizer tokenizer = Tokenizer::load(tokenizer_fixture("sentencepiece/bpe.model"));
  EXPECT_EQ(tokenizer.bos_id(), 1u);
  EXPECT_EQ(tokenizer.eos_id(), 2u);
  EXPECT_TRUE(tokenizer.is_special(2));
  EXPECT_TRUE(tokenizer.prefix_ids().empty());
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("The star\n")), " The star\n");
}

// "▁▁" is one of the symbols that the user defined; the library decodes it to two spaces.
TEST(SentencePiece, SymbolsOfTheUserDecodeAsOtherPieces) {
  Tokenizer tokenizer = Tokenizer::load(tokenizer_fixture("sentencepiece/symbols.model"));
  std::optional<uint32_t> spaces = tokenizer.token_id("▁▁");
  ASSERT_TRUE(spaces);
  EXPECT_EQ(tokenizer.decode(Ids{*spaces}), "  ");
}

std::string complaint_about(std::string_view bytes) {
  try {
    Tokenizer tokenizer = Tokenizer::from_sentencepiece(bytes, "file.model");
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

void expect_in(std::string_view part, const std::string& whole) {
  EXPECT_NE(whole.find(part), std::string::npos) << whole << "\n does not contain: " << part;
}

// Fields of a protocol buffer: a number, and bytes.
std::string field(int number, std::string_view bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + std::string(bytes);
}
std::string field(int number, char value) {
  return {static_cast<char>(number << 3), value};
}

std::string score(float value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return "\x15" + bytes;
}

// The library gives what the user defined 0.1 for each byte but the first: with scores above half of that its two parts
// win.
TEST(SentencePiece, WhatTheUserDefinedScoresAsInTheLibrary) {
  auto ids = [](float part) {
    std::string parts = field(1, field(1, "x") + score(part)) + field(1, field(1, "y") + score(part));
    std::string model = field(1, field(1, "<unk>") + field(3, '\2')) + parts +
                        field(1, field(1, "xy") + field(3, '\4')) + field(3, field(3, '\0') + field(4, '\0'));
    return Tokenizer::from_sentencepiece(model, "made").encode("xy");
  };
  EXPECT_EQ(ids(-3.0f), (Ids{3}));
  EXPECT_EQ(ids(0.04f), (Ids{3}));
  EXPECT_EQ(ids(0.06f), (Ids{1, 2}));
}

TEST(SentencePiece, FilesThatAreWrongAreRefused) {
  std::string unknown = field(1, field(1, "<unk>") + field(3, '\2')), a = field(1, field(1, "a"));
  EXPECT_EQ(complaint_about(unknown + a), "accepted");
  expect_in("no pieces", complaint_about(""));
  expect_in("cut short", complaint_about("\xFF"));
  expect_in("a field of", complaint_about("\x0A\x7F"));
  expect_in("wire type", complaint_about("\x0B"));
  expect_in("no piece of type unknown", complaint_about(a));
  expect_in("twice", complaint_about(unknown + a + a));
  expect_in("not text", complaint_about(unknown + field(1, field(1, "\xFF"))));
  expect_in("type 9", complaint_about(unknown + field(1, field(1, "a") + field(3, '\x09'))));
  expect_in("type BPE or unigram", complaint_about(unknown + a + field(2, field(3, '\3'))));
  expect_in("escape_whitespaces", complaint_about(unknown + a + field(3, field(5, '\0'))));
  expect_in("charsmap", complaint_about(unknown + a + field(3, field(2, "abc"))));
  std::string bpe = field(2, field(3, '\2'));
  expect_in("no piece", complaint_about(unknown + a + field(1, field(1, "ab")) + bpe));
  expect_in("unused", complaint_about(unknown + a + field(1, field(1, "b") + field(3, '\5')) + bpe));
}

TEST(VocabAndMerges, BecomeAByteLevelTokenizer) {
  VocabAndMerges files{
      .vocab = R"({"a": 0, "b": 1, "ab": 2, "<|endoftext|>": 3})",
      .merges = "#version: 0.2\na b\n",
      .config = R"({"tokenizer_class": "GPT2Tokenizer", "bos_token": "<|endoftext|>", "add_bos_token": true})",
      .added = R"({"<x>": 4})"};
  Tokenizer tokenizer(parse_vocab_and_merges(files, "vocab.json"));
  EXPECT_EQ(tokenizer.encode_with_special("ab<x>b<|endoftext|>"), (Ids{3, 2, 4, 1, 3}));
  files.config = R"({"tokenizer_class": "CTRLTokenizer"})";
  EXPECT_THROW(parse_vocab_and_merges(files, "vocab.json"), UserError);
  files.config = "[]";
  EXPECT_THROW(parse_vocab_and_merges(files, "vocab.json"), UserError);
  files = {.vocab = "{}", .merges = "a b", .config = "", .added = ""};
  EXPECT_THROW(parse_vocab_and_merges(files, "vocab.json"), UserError);
}

}  // namespace
}  // namespace sextant
