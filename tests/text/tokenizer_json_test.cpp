// tokenizer.json files that are wrong, hostile, or of a kind that is not supported: each is refused with its reason.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "text/tokenizer.h"

namespace sextant {
namespace {

using Json = nlohmann::json;

Json small_file() {
  return Json::parse(R"({"version": "1.0", "truncation": null, "padding": null, "normalizer": null,
    "added_tokens": [{"id": 3, "content": "<s>", "special": true}],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
    "post_processor": {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
      "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [3], "tokens": ["<s>"]}}},
    "decoder": {"type": "ByteLevel"}, "harmless": {"kept": [1, 2]},
    "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "",
      "end_of_word_suffix": "", "fuse_unk": false, "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})");
}

std::string complaint_about(const std::string& text) {
  try {
    Tokenizer tokenizer = Tokenizer::from_json(text, "file.json");
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

// The complaint about the small file with one place changed.
std::string complaint_with(std::string_view pointer, const Json& value) {
  Json file = small_file();
  file[Json::json_pointer(std::string(pointer))] = value;
  return complaint_about(file.dump());
}

Json before_byte_level(const Json& step) {
  return {{"type", "Sequence"}, {"pretokenizers", Json::array({step, Json{{"type", "ByteLevel"}}})}};
}

void expect_in(std::string_view part, const std::string& whole) {
  EXPECT_NE(whole.find(part), std::string::npos) << whole << "\n does not contain: " << part;
}

TEST(TokenizerJson, TheSmallFileIsFine) {
  Tokenizer tokenizer = Tokenizer::from_json(small_file().dump(), "file.json");
  EXPECT_EQ(tokenizer.encode_with_special("ab"), (std::vector<uint32_t>{3, 2}));
  Json written = Json::parse(tokenizer.to_json());
  EXPECT_EQ(written["post_processor"], small_file()["post_processor"]);
  EXPECT_EQ(written["harmless"], small_file()["harmless"]);
  EXPECT_EQ(written["model"]["vocab"], small_file()["model"]["vocab"]);
  EXPECT_EQ(written["model"]["merges"], small_file()["model"]["merges"]);
}

TEST(TokenizerJson, BothMergeNotations) {
  Json file = small_file();
  file["model"]["merges"] = Json::parse(R"([["a", "b"]])");
  Tokenizer pairs = Tokenizer::from_json(file.dump(), "file.json");
  EXPECT_EQ(pairs.encode("ab"), std::vector<uint32_t>{2});
  EXPECT_EQ(Json::parse(pairs.to_json())["model"]["merges"], file["model"]["merges"]);
  file["model"]["merges"] = Json::parse(R"(["#version: 0.2", "a b"])");
  EXPECT_EQ(Tokenizer::from_json(file.dump(), "file.json").encode("ab"), std::vector<uint32_t>{2});
}

TEST(TokenizerJson, NotJson) {
  expect_in("file.json byte", complaint_about(""));
  expect_in("not valid JSON", complaint_about("{\"model\": "));
  expect_in("not valid JSON", complaint_about("\xFF\xFE"));
  expect_in("not valid JSON", complaint_about("[1e999]"));
  expect_in("expected an object", complaint_about("[]"));
  expect_in("nested over", complaint_about(std::string(1 << 20, '[')));
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "{\"a\":";
  expect_in("nested over", complaint_about(deep));
  expect_in("model", complaint_about("{}"));
}

TEST(TokenizerJson, WrongTypes) {
  expect_in("file.json model.vocab", complaint_with("/model/vocab", Json::array({1})));
  expect_in("file.json model.vocab.b", complaint_with("/model/vocab/b", "x"));
  expect_in("file.json model.vocab.b", complaint_with("/model/vocab/b", -1));
  expect_in("file.json model.vocab.b", complaint_with("/model/vocab/b", 1.5));
  expect_in("file.json model.merges", complaint_with("/model/merges", "a b"));
  expect_in("file.json model.merges[0]", complaint_with("/model/merges/0", 7));
  expect_in("file.json model.merges[0]", complaint_with("/model/merges/0", Json::array({"a"})));
  expect_in("file.json model.merges[0]", complaint_with("/model/merges/0", "a b c"));
  expect_in("file.json model.merges[0]", complaint_with("/model/merges/0", "ab"));
  expect_in("file.json model.ignore_merges", complaint_with("/model/ignore_merges", "yes"));
  expect_in("file.json added_tokens[0].content", complaint_with("/added_tokens/0/content", 3));
  expect_in("file.json added_tokens[0].lstrip", complaint_with("/added_tokens/0/lstrip", 1));
  expect_in("file.json added_tokens", complaint_with("/added_tokens", "x"));
  expect_in("file.json pre_tokenizer", complaint_with("/pre_tokenizer", 1));
  expect_in("file.json post_processor.single", complaint_with("/post_processor/single", 1));
  expect_in("special_tokens", complaint_with("/post_processor/special_tokens", Json::object()));
}

TEST(TokenizerJson, HostileIds) {
  expect_in("ids without wide gaps", complaint_with("/model/vocab/b", 4294967294u));
  expect_in("a token id", complaint_with("/model/vocab/b", 4294967295u));
  expect_in("a token id", complaint_with("/model/vocab/b", uint64_t{1} << 40));
  expect_in("share id 0", complaint_with("/model/vocab/b", 0));
  expect_in("where HF `tokenizers` puts it", complaint_with("/added_tokens/0/id", 7));
  expect_in("where HF `tokenizers` puts it", complaint_with("/added_tokens/0/id", 4000000000u));
  Json file = small_file();
  file["added_tokens"].push_back(file["added_tokens"][0]);
  expect_in("added twice", complaint_about(file.dump()));
  expect_in("without gaps", complaint_with("/model/vocab/ab", 3));
  expect_in("is empty", complaint_with("/added_tokens/0/content", ""));
}

TEST(TokenizerJson, MergesOfUnknownTokens) {
  expect_in("\"c\" is not in the vocabulary", complaint_with("/model/merges/0", "a c"));
  expect_in("\"ba\" is not in the vocabulary", complaint_with("/model/merges/0", "b a"));
}

TEST(TokenizerJson, KindsThatAreNotSupportedAreNamed) {
  expect_in("a WordPiece model", complaint_with("/model/type", "WordPiece"));
  expect_in("a ByteLevel normalizer", complaint_with("/normalizer", {{"type", "ByteLevel"}}));
  expect_in("not base64", complaint_with("/normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", "?"}}));
  expect_in("a trie of",
            complaint_with("/normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", "AAAAAAAA"}}));
  expect_in("accepted", complaint_with("/normalizer", {{"type", "Sequence"}, {"normalizers", Json::array()}}));
  expect_in("a UnicodeScripts pre-tokenizer", complaint_with("/pre_tokenizer", {{"type", "UnicodeScripts"}}));
  expect_in("a second ByteLevel", complaint_with("/pre_tokenizer", before_byte_level({{"type", "ByteLevel"}})));
  expect_in("\"first\" or \"never\"", complaint_with("/pre_tokenizer", Json::parse(R"({"type": "Metaspace",
      "replacement": "_", "prepend_scheme": "last"})")));
  expect_in("one character", complaint_with("/pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "__"}}));
  expect_in("accepted", complaint_with("/pre_tokenizer", nullptr));
  expect_in("a Unknown post-processor", complaint_with("/post_processor", {{"type", "Unknown"}}));
  expect_in("truncation", complaint_with("/truncation", {{"max_length", 8}}));
  expect_in("dropped at random", complaint_with("/model/dropout", 0.1));
  expect_in("end_of_word_suffix", complaint_with("/model/end_of_word_suffix", "</w>"));
  expect_in("byte_fallback", complaint_with("/model/byte_fallback", true));
  expect_in("unk_token", complaint_with("/model/unk_token", "<unk>"));
  expect_in("version", complaint_with("/version", "2.0"));
  Json split{{"type", "Split"}, {"pattern", {{"Regex", "a"}}}, {"behavior", "MergedWithNext"}, {"invert", true}};
  expect_in("invert", complaint_with("/pre_tokenizer", before_byte_level(split)));
  split["behavior"] = "Halved";
  expect_in("Halved", complaint_with("/pre_tokenizer", before_byte_level(split)));
}

TEST(TokenizerJson, UnigramFilesThatAreWrong) {
  auto complaint = [](std::string_view model) {
    return complaint_about(fmt::format(R"({{"model": {{"type": "Unigram", {}}}}})", model));
  };
  expect_in("accepted", complaint(R"("unk_id": 0, "vocab": [["a", -1], ["b", -2.5]])"));
  expect_in("unk_id", complaint(R"("vocab": [["a", -1]])"));
  expect_in("unk_id", complaint(R"("unk_id": 1, "vocab": [["a", -1]])"));
  expect_in("model.vocab[0]", complaint(R"("unk_id": 0, "vocab": [["a"]])"));
  expect_in("model.vocab[0]", complaint(R"("unk_id": 0, "vocab": [["a", "b"]])"));
}

// Every way to cut a text, tried out: pieces score what the file says, a character that is no piece by itself 10 less
// than the lowest, the largest sum wins. Neighbouring characters without a piece are then one run, which is its piece
// if it has one: with scores above 0 no best path takes that.
std::vector<uint32_t> best_cut(const std::map<std::string, std::pair<uint32_t, double>>& pieces, double lowest,
                               const std::string& text) {
  const size_t n = text.size();
  double best = -1e300;
  std::vector<uint32_t> ids;
  for (uint32_t cuts = 0; cuts < 1U << (n - 1); ++cuts) {
    double sum = 0;
    std::vector<uint32_t> found;
    std::string run;  // of characters without a piece
    auto end_run = [&] {
      if (auto at = pieces.find(run); !run.empty()) found.push_back(at == pieces.end() ? 0 : at->second.first);
      run.clear();
    };
    bool possible = true;
    for (size_t begin = 0, end = 0; possible && begin < n; begin = end) {
      for (end = begin + 1; end < n && (cuts >> (end - 1) & 1) == 0;) ++end;
      std::string piece = text.substr(begin, end - begin);
      if (auto at = pieces.find(piece); at != pieces.end()) {
        end_run();
        sum += at->second.second;
        found.push_back(at->second.first);
      } else {
        possible = piece.size() == 1;
        sum += lowest - 10;
        run += piece;
      }
    }
    end_run();
    if (possible && sum > best + 1e-9) best = sum, ids = found;
  }
  return ids;
}

TEST(TokenizerJson, UnigramTakesTheBestOfAllCuts) {
  std::mt19937 random(4);
  for (int vocabulary = 0; vocabulary < 40; ++vocabulary) {
    const double base = vocabulary % 2 == 0 ? 60 : -20;  // scores above 0, and as files have them
    std::map<std::string, std::pair<uint32_t, double>> pieces;
    Json vocab = Json::array({Json::array({"<unk>", base})});
    double lowest = base;
    auto add = [&](const std::string& piece) {
      double score = base + static_cast<double>(random() % 20000) / 1000;  // no two sums are equal but by chance
      if (pieces.contains(piece)) return;
      pieces[piece] = {static_cast<uint32_t>(vocab.size()), score};
      vocab.push_back(Json::array({piece, score}));
    };
    for (const char* piece : {"a", "b", "xy"}) add(piece);
    for (int i = 0; i < 6; ++i) {
      std::string piece;
      for (uint32_t length = 2 + random() % 3; length > 0; --length) piece += "abxy"[random() % 4];
      add(piece);
    }
    Tokenizer tokenizer = Tokenizer::from_json(
        Json{{"model", {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocab}}}}.dump(), "unigram.json");
    for (int turn = 0; turn < 40; ++turn) {
      std::string text;
      for (uint32_t length = 1 + random() % 8; length > 0; --length) text += "abxy"[random() % 4];
      std::vector<uint32_t> expected = best_cut(pieces, lowest, text);
      EXPECT_EQ(tokenizer.encode_with_special(text), expected) << text << " of vocabulary " << vocabulary;
    }
    for (const char* text : {"xy", "axyb", "xyxy"})
      EXPECT_EQ(tokenizer.encode_with_special(text), best_cut(pieces, lowest, text))
          << text << " of vocabulary " << vocabulary;
  }
}

TEST(TokenizerJson, RobertaStyleEnds) {
  Json file = small_file();
  file["post_processor"] = Json::parse(
      R"({"type": "RobertaProcessing", "sep": ["b", 1], "cls": ["<s>", 3], "trim_offsets": true, "add_prefix_space": false})");
  Tokenizer tokenizer = Tokenizer::from_json(file.dump(), "file.json");
  EXPECT_EQ(tokenizer.encode_with_special("a"), (std::vector<uint32_t>{3, 0, 1}));
  EXPECT_EQ(tokenizer.bos_id(), 3u);
  EXPECT_EQ(tokenizer.eos_id(), 1u);
}

}  // namespace
}  // namespace sextant
