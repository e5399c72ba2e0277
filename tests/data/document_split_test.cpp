// Held-out documents: an exact share, nothing trained on, and the same tokens however they are read.
#include "data/document_split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "data/sampler.h"
#include "data/scratch_folder.h"
#include "data/token_writer.h"

namespace sextant {
namespace {

constexpr int32_t kEnd = 9999;

// Document d is d + 1 times the id d, and the end token.
std::shared_ptr<const TokenFile> telling_file(const ScratchFolder& folder, std::string_view name, TokenKind kind,
                                              int32_t documents) {
  TokenWriter writer(folder / name, {.kind = kind, .type = TokenType::u16, .end_of_text = kEnd});
  for (int32_t d = 0; d < documents; ++d)
    writer.append_document(std::vector<int32_t>(static_cast<size_t>(d % 7 + 1), d));
  writer.finish();
  return std::make_shared<TokenFile>(open_token_file(folder / name));
}

std::vector<int32_t> tokens_of(const TokenFile& file, const TokenSelection& selection) {
  std::vector<int32_t> all;
  selection.for_each_range(0, selection.size(), [&](TokenRange range) {
    std::vector<int32_t> ids(static_cast<size_t>(range.size()));
    file.read(range.begin, ids);
    all.insert(all.end(), ids.begin(), ids.end());
  });
  return all;
}

TEST(DocumentIndex, IndexAndMarksAgree) {
  ScratchFolder folder;
  auto pair = telling_file(folder, "pair", TokenKind::megatron, 40),
       flat = telling_file(folder, "flat.u16", TokenKind::flat, 40);
  EXPECT_FALSE(index_documents(flat, std::nullopt));
  auto a = index_documents(pair, std::nullopt), b = index_documents(flat, kEnd);
  ASSERT_TRUE(a && b);
  ASSERT_EQ(a->count(), 40);
  ASSERT_EQ(b->count(), 40);
  int64_t at = 0;
  for (int64_t d = 0; d < 40; ++d) {
    TokenRange expected{at, at + d % 7 + 2};
    EXPECT_EQ(a->range(d), expected);
    EXPECT_EQ(b->range(d), expected);
    for (; at < expected.end; ++at) {
      EXPECT_EQ(a->document_at(at), d);
      EXPECT_EQ(b->document_at(at), d);
    }
  }
}

TEST(DocumentIndex, ALastDocumentNeedsNoMark) {
  ScratchFolder folder;
  TokenWriter writer(folder / "x.u16", {.type = TokenType::u16});
  writer.append_document(std::vector<int32_t>{5, 9, 6, 7});
  writer.finish();
  auto index = index_documents(std::make_shared<TokenFile>(open_token_file(folder / "x.u16")), 9);
  ASSERT_EQ(index->count(), 2);
  EXPECT_EQ(index->range(1), (TokenRange{2, 4}));
}

TEST(DocumentSplit, EveryDocumentIsOnOneSideWhole) {
  ScratchFolder folder;
  auto file = telling_file(folder, "pair", TokenKind::megatron, 200);
  auto index = *index_documents(file, std::nullopt);
  for (double share : {0.05, 0.1, 0.5, 0.995}) {
    auto split = split_documents(index, share, 77);
    ASSERT_TRUE(split) << share;
    std::map<int32_t, int> lengths;
    std::set<int32_t> held_out, trained;
    for (int32_t id : tokens_of(*file, split->validation)) held_out.insert(id), ++lengths[id];
    for (int32_t id : tokens_of(*file, split->train)) trained.insert(id), ++lengths[id];
    held_out.erase(kEnd), trained.erase(kEnd);
    EXPECT_EQ(std::ssize(held_out), std::llround(200 * share)) << share;
    EXPECT_EQ(std::ssize(trained), 200 - std::ssize(held_out)) << "a document is on both sides";
    EXPECT_EQ(lengths[kEnd], 200);
    for (int32_t d = 0; d < 200; ++d) EXPECT_EQ(lengths[d], d % 7 + 1) << d;
  }
}

TEST(DocumentSplit, IsASampleThatTheKeyChooses) {
  ScratchFolder folder;
  auto file = telling_file(folder, "pair", TokenKind::megatron, 2000);
  auto index = *index_documents(file, std::nullopt);
  auto held_out = [&](double share, uint64_t key) {
    std::vector<int32_t> ids = tokens_of(*file, split_documents(index, share, key)->validation);
    std::set<int32_t> documents(ids.begin(), ids.end());
    documents.erase(kEnd);
    return documents;
  };
  auto some = held_out(0.05, 1), same = held_out(0.05, 1), other = held_out(0.05, 2), more = held_out(0.2, 1);
  EXPECT_EQ(some, same);
  EXPECT_NE(some, other);
  EXPECT_TRUE(std::includes(more.begin(), more.end(), some.begin(), some.end()));
  // Over the whole file: 100 of 2000, so each quarter has 25 on average, with a standard deviation of 4.2.
  for (int quarter = 0; quarter < 4; ++quarter) {
    auto count = std::ranges::count_if(some, [&](int32_t d) { return d / 500 == quarter; });
    EXPECT_NEAR(static_cast<double>(count), 25, 17) << quarter;
  }
  // And so is its beginning, which is what is measured.
  std::vector<int32_t> ids = tokens_of(*file, split_documents(index, 0.5, 1)->validation);
  ids.resize(200);
  EXPECT_GT(*std::ranges::max_element(ids, {}, [](int32_t id) { return id == kEnd ? 0 : id; }), 1000);
}

TEST(DocumentSplit, TooFewDocumentsAreLeftToOthers) {
  ScratchFolder folder;
  auto file = telling_file(folder, "pair", TokenKind::megatron, 9);
  auto index = *index_documents(file, std::nullopt);
  EXPECT_FALSE(split_documents(index, 0.05, 1));
  EXPECT_FALSE(split_documents(index, 0.99, 1));
  EXPECT_TRUE(split_documents(index, 0.06, 1));
}

TEST(TokenSelection, ReadsAcrossRangesInTheirOrder) {
  TokenSelection selection(std::vector<TokenRange>{{10, 13}, {13, 15}, {7, 7}, {0, 2}, {20, 30}});
  EXPECT_EQ(selection.size(), 17);
  EXPECT_EQ(std::ssize(selection.ranges()), 3);
  std::vector<int64_t> all{10, 11, 12, 13, 14, 0, 1};
  for (int64_t t = 20; t < 30; ++t) all.push_back(t);
  for (int64_t first = 0; first < 17; ++first)
    for (int64_t count = 0; first + count <= 17; ++count) {
      std::vector<int64_t> seen;
      selection.for_each_range(first, count, [&](TokenRange range) {
        for (int64_t t = range.begin; t < range.end; ++t) seen.push_back(t);
      });
      EXPECT_EQ(seen, std::vector<int64_t>(all.begin() + first, all.begin() + first + count)) << first << " " << count;
    }
}

TEST(TokenSelection, SamplesAreCutFromTheSelection) {
  ScratchFolder folder;
  std::vector<int32_t> ids(100);
  std::iota(ids.begin(), ids.end(), 0);
  TokenWriter writer(folder / "x.u16", {.type = TokenType::u16});
  writer.append_document(ids);
  writer.finish();
  auto file = std::make_shared<TokenFile>(open_token_file(folder / "x.u16"));
  SampleSource source{file, TokenSelection(std::vector<TokenRange>{{50, 53}, {10, 16}}), 1};
  BatchSampler sampler({source}, {.seq = 4, .vocab = 100, .order = SampleOrder::sequential});
  ASSERT_EQ(sampler.samples(0), 2);
  std::vector<int32_t> tokens(8), targets(8);
  sampler.fill(0, 2, tokens, targets);
  EXPECT_EQ(tokens, (std::vector<int32_t>{50, 51, 52, 10, 11, 12, 13, 14}));
  EXPECT_EQ(targets, (std::vector<int32_t>{51, 52, 10, 11, 12, 13, 14, 15}));
  // An id that is too high is named by its place in the file.
  BatchSampler small({source}, {.seq = 4, .vocab = 52, .order = SampleOrder::sequential});
  EXPECT_TRUE(says(complaint_of([&] { small.fill(0, 1, std::span(tokens).first(4), std::span(targets).first(4)); }),
                   {"(token 52)", "token id 52"}));
}

}  // namespace
}  // namespace sextant
