// Documents in token files: what stands around each of them, as the tokenizer's post-processor says.
#include "data/tokenize.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "data/scratch_folder.h"
#include "data/token_file.h"
#include "text/tokenizer_fixtures.h"

namespace sextant {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<int32_t>;

constexpr int32_t kBegin = 3, kEnd = 4, kOther = 5;

// Tokens a, b and ab; <s>, </s> and <x> are special.
Tokenizer with_post_processor(const Json& post_processor) {
  Json file = Json::parse(R"({"version": "1.0", "added_tokens": [{"id": 3, "content": "<s>", "special": true},
      {"id": 4, "content": "</s>", "special": true}, {"id": 5, "content": "<x>", "special": true}],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}, "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})");
  file["post_processor"] = post_processor;
  return Tokenizer::from_json(file.dump(), "file.json");
}

// Special tokens before and after the sequence, by their ids.
Json around(const Ids& before, const Ids& after) {
  static const std::vector<std::string> kNames{"a", "b", "ab", "<s>", "</s>", "<x>"};
  Json single = Json::array(), special = Json::object();
  auto put = [&](int32_t id) {
    const std::string& name = kNames[static_cast<size_t>(id)];
    single.push_back({{"SpecialToken", {{"id", name}, {"type_id", 0}}}});
    special[name] = {{"id", name}, {"ids", {id}}, {"tokens", {name}}};
  };
  for (int32_t id : before) put(id);
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  for (int32_t id : after) put(id);
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", Json::array()}, {"special_tokens", special}};
}

Ids tokenized(const Tokenizer& tokenizer, std::vector<std::string> texts) {
  ScratchFolder folder;
  ThreadTeam team(1);
  tokenize_documents(
      [&](const DocumentVisitor& visit) {
        for (const std::string& text : texts) visit(text);
      },
      tokenizer, {.path = folder / "out.bin"}, team);
  TokenFile file = open_token_file(folder / "out.bin");
  Ids ids(static_cast<size_t>(file.token_count()));
  file.read(0, ids);
  return ids;
}

TEST(TokenizeDocuments, PutsWhatThePostProcessorSaysAroundEachDocument) {
  const std::vector<std::string> texts{"ab", "b"};
  Json byte_level{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  auto sequence = [&](const Json& last) { return Json{{"type", "Sequence"}, {"processors", {byte_level, last}}}; };
  const Ids plain{2, kEnd, 1, kEnd}, begun{kBegin, 2, kEnd, kBegin, 1, kEnd};
  EXPECT_EQ(tokenized(with_post_processor(nullptr), texts), plain);
  EXPECT_EQ(tokenized(with_post_processor(byte_level), texts), plain);  // GPT-2
  EXPECT_EQ(tokenized(with_post_processor(around({kBegin}, {})), texts), begun);
  EXPECT_EQ(tokenized(with_post_processor(sequence(around({kBegin}, {}))), texts), begun);  // Llama 3
  // One that the template puts at the end is not put there again.
  EXPECT_EQ(tokenized(with_post_processor(around({}, {kEnd})), texts), plain);
  EXPECT_EQ(tokenized(with_post_processor(around({kBegin}, {kEnd})), texts), begun);
  EXPECT_EQ(tokenized(with_post_processor(around({kBegin, kOther}, {kOther, kEnd})), {"ab"}),
            (Ids{kBegin, kOther, 2, kOther, kEnd}));
  Json roberta{{"type", "RobertaProcessing"},
               {"cls", {"<s>", kBegin}},
               {"sep", {"</s>", kEnd}},
               {"trim_offsets", true},
               {"add_prefix_space", false}};
  EXPECT_EQ(tokenized(with_post_processor(roberta), texts), begun);
}

TEST(TokenizeDocuments, IsEncodingWithSpecialTokensThenTheEnd) {
  for (const char* name : {"gpt2_style.json", "llama3_style.json"}) {
    Tokenizer tokenizer = Tokenizer::load(tokenizer_fixture(name));
    std::vector<std::string> texts{"Once upon a time", "there was <|endoftext|> in the middle", "a"};
    Ids expected;
    for (const std::string& text : texts) {
      for (uint32_t id : tokenizer.encode_with_special(text)) expected.push_back(static_cast<int32_t>(id));
      expected.push_back(static_cast<int32_t>(*tokenizer.eos_id()));
    }
    EXPECT_EQ(tokenized(tokenizer, texts), expected) << name;
  }
}

TEST(TokenizeDocuments, WhatATemplateAddsMustBeATokenAndAroundOneSequence) {
  Json unknown = around({kBegin}, {});
  unknown["special_tokens"]["<s>"]["ids"] = {6};
  EXPECT_TRUE(
      says(complaint_of([&] { with_post_processor(unknown); }), {"file.json post_processor", "id 6", "no token"}));
  Json twice = around({}, {});
  twice["single"].push_back(twice["single"][0]);
  EXPECT_TRUE(says(complaint_of([&] { with_post_processor(twice); }),
                   {"post_processor.single[1]", "more than the one sequence"}));
  EXPECT_TRUE(
      says(complaint_of([&] {
             with_post_processor({{"type", "Sequence"}, {"processors", {around({kBegin}, {}), around({}, {kEnd})}}});
           }),
           {"a second processor"}));
}

}  // namespace
}  // namespace sextant
