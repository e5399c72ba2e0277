// Merging against a plain reading of the definition, and training against merges that HF learnt from the same text.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/rng.h"
#include "text/bpe/bpe_alphabet.h"
#include "text/bpe/bpe_cache.h"
#include "text/bpe/bpe_model.h"
#include "text/bpe/bpe_trainer.h"
#include "text/tokenizer_fixtures.h"
#include "text/unicode/unicode_utf8.h"

namespace sextant {
namespace {

// A model over the letters a..d (ids 0..3) with random merges, most of them of merged tokens.
BpeModelParts random_model(uint64_t seed) {
  Random random(seed, "bpe_test");
  BpeModelParts parts;
  std::vector<std::string> tokens{"a", "b", "c", "d"};
  uint64_t draw = 0;
  while (parts.merges.size() < 60) {
    auto left = static_cast<uint32_t>(random.below(draw++, tokens.size()));
    auto right = static_cast<uint32_t>(random.below(draw++, tokens.size()));
    std::string joined = tokens[left] + tokens[right];
    // One pair for each token: where there are several, HF departs from the definition (tokenizer_test.cpp compares).
    if (std::find(tokens.begin(), tokens.end(), joined) != tokens.end()) continue;
    parts.merges.push_back({{left, right}, static_cast<uint32_t>(tokens.size())});
    tokens.push_back(joined);
  }
  for (uint32_t id = 0; id < tokens.size(); ++id) parts.tokens.emplace_back(tokens[id], id);
  return parts;
}

// The definition: while some pair of neighbours has a rank, merge the one of lowest rank, the leftmost of those.
std::vector<uint32_t> by_definition(const BpeModelParts& parts, std::string_view piece) {
  std::map<TokenPair, std::pair<size_t, uint32_t>> ranks;
  for (size_t rank = 0; rank < parts.merges.size(); ++rank)
    ranks[parts.merges[rank].pair] = {rank, parts.merges[rank].merged};
  std::vector<uint32_t> ids;
  for (char c : piece) ids.push_back(static_cast<uint32_t>(c - 'a'));
  for (;;) {
    auto best = ranks.end();
    size_t place = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      auto found = ranks.find({ids[i], ids[i + 1]});
      if (found == ranks.end() || (best != ranks.end() && found->second.first >= best->second.first)) continue;
      best = found;
      place = i;
    }
    if (best == ranks.end()) return ids;
    ids[place] = best->second.second;
    ids.erase(ids.begin() + static_cast<ptrdiff_t>(place) + 1);
  }
}

TEST(BpeModel, MergesByDefinitionAtEveryLength) {
  BpeModel::Scratch scratch;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    BpeModelParts parts = random_model(seed);
    BpeModel model(parts);
    Random random(seed, "bpe_test.text");
    uint64_t draw = 0;
    for (size_t length : {1, 2, 3, 5, 8, 13, 30, 63, 64, 65, 66, 100, 200}) {
      std::string piece;
      while (piece.size() < length) piece += static_cast<char>('a' + random.below(draw++, seed % 3 + 2));
      std::vector<uint32_t> ids;
      model.encode(piece, ids, scratch);
      EXPECT_EQ(ids, by_definition(parts, piece)) << piece;
    }
  }
}

TEST(BpeModel, LongPiecesAreNotQuadratic) {
  BpeModelParts parts{.tokens = {{"a", 0}, {"aa", 1}, {"aaaa", 2}}, .merges = {{{0, 0}, 1}, {{1, 1}, 2}}};
  BpeModel model(parts);
  BpeModel::Scratch scratch;
  std::vector<uint32_t> ids;
  constexpr size_t kLength = (1 << 20) + 4;
  model.encode(std::string(kLength, 'a'), ids, scratch);
  EXPECT_EQ(ids, std::vector<uint32_t>(kLength / 4, 2));
  EXPECT_EQ(scratch.symbols.capacity(), 0u);  // memory for one huge piece is not held on to
}

TEST(BpeModel, UnknownBytes) {
  BpeModelParts parts{.tokens = {{"a", 0}, {"b", 1}}};
  BpeModel::Scratch scratch;
  auto encode = [&](std::string_view piece) {
    std::vector<uint32_t> ids;
    BpeModel(parts).encode(piece, ids, scratch);
    return ids;
  };
  EXPECT_EQ(encode("axxb"), (std::vector<uint32_t>{0, 1}));
  parts.unknown = {.id = 9};
  EXPECT_EQ(encode("axxb"), (std::vector<uint32_t>{0, 9, 9, 1}));
  parts.unknown.fused = true;
  EXPECT_EQ(encode("axxbx"), (std::vector<uint32_t>{0, 9, 1, 9}));
}

TEST(BpeAlphabet, AllBytesThereAndBack) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(bytes_of_name(name_of_bytes(all)), all);
  EXPECT_EQ(name_of_bytes(" the\n"), "ĠtheĊ");
  EXPECT_EQ(name_of_bytes("é"), "Ã©");
  EXPECT_EQ(bytes_of_name("a b"), std::nullopt);
  EXPECT_EQ(bytes_of_name("中"), std::nullopt);
  std::vector<char> order = bytes_in_alphabet_order();
  EXPECT_EQ(order.size(), 256u);
  EXPECT_EQ(order.front(), '!');
  EXPECT_EQ(static_cast<uint8_t>(order.back()), 173);
}

TEST(PieceCache, KeysTellPiecesApart) {
  PieceCache cache;
  constexpr std::string_view text("word\0\0 and sixteen bytes of it", 30);
  auto key = [&](std::string_view piece) { return PieceCache::short_key(piece, piece.data() + piece.size()); };
  for (uint32_t size = 1; size <= PieceCache::kShortBytes; ++size)
    cache.remember_short(key(text.substr(0, size)), std::array{size});
  for (uint32_t size = 1; size <= PieceCache::kShortBytes; ++size) {
    std::string_view piece = text.substr(0, size);
    // The same piece is found whether or not there is memory to read behind it.
    for (const char* readable_end : {piece.data() + size, text.data() + text.size()}) {
      const PieceCache::ShortEntry* entry = cache.find_short(PieceCache::short_key(piece, readable_end));
      ASSERT_NE(entry, nullptr);
      EXPECT_EQ(entry->ids[0], size);
    }
  }
  EXPECT_EQ(cache.find_short(key("wore")), nullptr);
  EXPECT_EQ(cache.find_short(key(std::string_view("word\0\0\0", 7))), nullptr);
}

std::vector<std::string> valid_documents() {
  std::vector<std::string> documents = sample_documents();
  std::erase_if(documents, [](const std::string& document) { return !is_valid_utf8(document); });
  return documents;
}

Tokenizer train(const std::vector<std::string>& documents, BpeTrainingPlan plan) {
  std::vector<std::string_view> views(documents.begin(), documents.end());
  return train_bpe(views, std::move(plan));
}

void expect_same_learning(const Tokenizer& ours, const std::filesystem::path& theirs, size_t vocab_size) {
  TokenizerParts a = parse_tokenizer(ours.to_json(), "ours");
  TokenizerParts b = parse_tokenizer(read_file(theirs), theirs.string());
  ASSERT_EQ(a.vocab.size(), vocab_size);
  ASSERT_EQ(b.vocab.size(), vocab_size);
  for (size_t i = 0; i < vocab_size; ++i) ASSERT_EQ(a.vocab[i].name, b.vocab[i].name) << i;
  ASSERT_EQ(a.merges.size(), b.merges.size());
  for (size_t i = 0; i < a.merges.size(); ++i) ASSERT_EQ(a.merges[i].pair, b.merges[i].pair) << i;
}

TEST(BpeTrainer, LearnsTheMergesThatHfLearns) {
  std::vector<std::string> documents = valid_documents();
  expect_same_learning(train(documents, {.vocab_size = 2400, .special_tokens = {"<|endoftext|>", "<|pad|>"}}),
                       tokenizer_fixture("gpt2_style.json"), 2400);
  // The order of the documents does not matter.
  std::reverse(documents.begin(), documents.end());
  expect_same_learning(train(documents, {.vocab_size = 3200, .pattern = std::string(kLlama3Pattern)}),
                       tokenizer_fixture("llama3_style.json"), 3200);
}

TEST(BpeTrainer, WhatItMakesEncodesAndReloads) {
  std::vector<std::string> documents{"the theory of the thing", "then they thought", "caf\xC3\xA9 caf\xE9"};
  Tokenizer tokenizer = train(documents, {.vocab_size = 280, .special_tokens = {"<|endoftext|>"}, .min_count = 2});
  EXPECT_LT(tokenizer.vocab_size(), 280u);  // pairs that occur once stay apart
  EXPECT_EQ(tokenizer.eos_id(), 0u);
  Tokenizer again = Tokenizer::from_json(tokenizer.to_json(), "again");
  std::string text = "the other thing<|endoftext|>";
  EXPECT_EQ(again.encode(text), tokenizer.encode(text));
  EXPECT_EQ(again.decode(again.encode(text)), text);
  EXPECT_EQ(again.encode(" the").size(), 1u);
}

TEST(BpeTrainer, RefusesPlansThatCannotBe) {
  EXPECT_THROW(BpeTrainer({.vocab_size = 255}), UserError);
  EXPECT_THROW(BpeTrainer({.vocab_size = 300, .special_tokens = {""}}), UserError);
  EXPECT_THROW(BpeTrainer({.vocab_size = 300, .special_tokens = {"a", "a"}}), UserError);
  EXPECT_THROW(BpeTrainer({.vocab_size = 300, .special_tokens = {"\xFF"}}), UserError);
  EXPECT_THROW(BpeTrainer({.vocab_size = 300, .pattern = "("}), UserError);
}

}  // namespace
}  // namespace sextant
