#include "data/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "data/scratch_folder.h"
#include "data/token_writer.h"

namespace sextant {
namespace {

// Token i of the file is base + i, so that a sample shows where it comes from.
std::shared_ptr<const TokenFile> counting_file(const ScratchFolder& folder, int32_t base, int64_t tokens) {
  std::vector<int32_t> ids(static_cast<size_t>(tokens));
  std::iota(ids.begin(), ids.end(), base);
  auto path = folder / fmt::format("{}.u32", base);
  TokenWriter writer(path, {.type = TokenType::u32});
  writer.append_document(ids);
  writer.finish();
  return std::make_shared<TokenFile>(open_token_file(path));
}

struct Batch {
  std::vector<int32_t> tokens, targets;
  bool operator==(const Batch&) const = default;
};

Batch batch_of(const BatchSampler& sampler, int64_t first, int64_t count) {
  Batch batch{std::vector<int32_t>(static_cast<size_t>(count * sampler.seq()), -1),
              std::vector<int32_t>(static_cast<size_t>(count * sampler.seq()), -1)};
  sampler.fill(first, count, batch.tokens, batch.targets);
  return batch;
}

TEST(Packing, CutsWithoutLoss) {
  EXPECT_EQ((Packing{{0, 9}, 4}.samples()), 2);
  EXPECT_EQ((Packing{{0, 8}, 4}.samples()), 1);
  EXPECT_EQ((Packing{{0, 4}, 4}.samples()), 0);
  EXPECT_EQ((Packing{{0, 0}, 4}.samples()), 0);
  EXPECT_EQ((Packing{{100, 109}, 4}.first_token(1)), 104);
}

TEST(Split, KeepsTheTail) {
  Split split = split_tail(1000, 0.1);
  EXPECT_EQ(split.train, (TokenRange{0, 900}));
  EXPECT_EQ(split.validation, (TokenRange{900, 1000}));
  EXPECT_EQ(split_tail(1000, 0).validation.size(), 0);
  for (double bad : {-0.1, 1.0, std::nan("")})
    EXPECT_TRUE(says(complaint_of([&] { split_tail(10, bad); }), {"validation fraction"}));
}

TEST(Sampler, SequentialSamplesAreTheFileInOrder) {
  ScratchFolder folder;
  BatchSampler sampler({{counting_file(folder, 0, 14), {0, 14}}},
                       {.seq = 4, .vocab = 100, .order = SampleOrder::sequential});
  EXPECT_EQ(sampler.samples(0), 3);
  Batch batch = batch_of(sampler, 0, 4);
  EXPECT_EQ(batch.tokens, (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0, 1, 2, 3}));
  EXPECT_EQ(batch.targets, (std::vector<int32_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 1, 2, 3, 4}));
}

TEST(Sampler, EveryEpochHasEverySampleOnceInItsOwnOrder) {
  ScratchFolder folder;
  const int64_t seq = 8, samples = 125;
  BatchSampler sampler({{counting_file(folder, 0, 1003), {0, 1003}}}, {.seq = seq, .vocab = 2000, .seed = 3});
  ASSERT_EQ(sampler.samples(0), samples);
  std::vector<std::vector<int32_t>> orders;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    Batch batch = batch_of(sampler, epoch * samples, samples);
    std::vector<int32_t> order;
    for (int64_t row = 0; row < samples; ++row) {
      int32_t first = batch.tokens[static_cast<size_t>(row * seq)];
      order.push_back(first);
      for (int64_t i = 0; i < seq; ++i) {
        ASSERT_EQ(batch.tokens[static_cast<size_t>(row * seq + i)], first + i);
        ASSERT_EQ(batch.targets[static_cast<size_t>(row * seq + i)], first + i + 1);
      }
    }
    std::set<int32_t> distinct(order.begin(), order.end());
    EXPECT_EQ(std::ssize(distinct), samples);
    EXPECT_EQ(*distinct.rbegin(), (samples - 1) * seq);
    orders.push_back(order);
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_NE(orders[1], orders[2]);
  EXPECT_FALSE(std::is_sorted(orders[0].begin(), orders[0].end()));
}

TEST(Sampler, ResumeIsExactFromAnywhere) {
  ScratchFolder folder;
  auto a = counting_file(folder, 0, 500), b = counting_file(folder, 5000, 300);
  std::vector<SampleSource> sources{{a, {0, 500}, 3}, {b, {10, 300}, 1}};
  SamplerOptions options{.seq = 7, .vocab = 10000, .seed = 11};
  Batch whole = batch_of(BatchSampler(sources, options), 0, 400);
  Cursor cursor;
  Batch pieces;
  for (int64_t count = 1; cursor.samples_consumed < 400; count = count % 13 + 1) {
    count = std::min(count, 400 - cursor.samples_consumed);
    Batch piece = batch_of(BatchSampler(sources, options), cursor.samples_consumed, count);  // a new one: no memory
    pieces.tokens.insert(pieces.tokens.end(), piece.tokens.begin(), piece.tokens.end());
    pieces.targets.insert(pieces.targets.end(), piece.targets.begin(), piece.targets.end());
    cursor.samples_consumed += count;
  }
  EXPECT_EQ(pieces, whole);
  options.seed = 12;
  EXPECT_NE(batch_of(BatchSampler(sources, options), 0, 400), whole);
}

TEST(Sampler, ValidationTokensAreNeverTrainedOn) {
  ScratchFolder folder;
  auto file = counting_file(folder, 0, 1000);
  Split split = split_tail(file->token_count(), 0.2);
  auto seen_in = [&](TokenRange range) {
    BatchSampler sampler({{file, range}}, {.seq = 9, .vocab = 2000});
    Batch batch = batch_of(sampler, 0, sampler.samples(0));
    std::set<int32_t> seen(batch.tokens.begin(), batch.tokens.end());
    seen.insert(batch.targets.begin(), batch.targets.end());
    return seen;
  };
  auto train = seen_in(split.train), validation = seen_in(split.validation);
  EXPECT_LT(*train.rbegin(), 800);
  EXPECT_GE(*validation.begin(), 800);
}

TEST(Sampler, FaultsNameTheFile) {
  ScratchFolder folder;
  auto file = counting_file(folder, 0, 100);
  EXPECT_TRUE(says(complaint_of([&] {
                     BatchSampler({{file, {0, 8}}}, {.seq = 8, .vocab = 200});
                   }),
                   {"0.u32", "8 tokens", "9 at least"}));
  BatchSampler sampler({{file, {0, 100}}}, {.seq = 8, .vocab = 50, .order = SampleOrder::sequential});
  EXPECT_EQ(complaint_of([&] { batch_of(sampler, 0, 6); }), "");
  // Sample 6 has inputs 48 … 55 and reaches the first bad id; sample 5 ends with target 48.
  EXPECT_TRUE(says(complaint_of([&] { batch_of(sampler, 6, 1); }), {"0.u32 at byte", "token id 55", "below 50"}));
  BatchSampler edge({{file, {1, 100}}}, {.seq = 7, .vocab = 50, .order = SampleOrder::sequential});
  EXPECT_TRUE(says(complaint_of([&] { batch_of(edge, 6, 1); }), {"at byte 200 (token 50)", "token id 50"}));
}

TEST(Sampler, AnEmptyFileIsNamed) {
  ScratchFolder folder;
  auto empty = std::make_shared<TokenFile>(open_token_file(folder.write("empty.bin", "")));
  auto good = counting_file(folder, 0, 100);
  std::vector<SampleSource> sources{{good, {0, 100}, 100}, {empty, {0, 0}, 0}};
  EXPECT_TRUE(
      says(complaint_of([&] { BatchSampler(sources, {.seq = 8, .vocab = 100}); }), {"empty.bin: the file is empty"}));
}

TEST(Blend, CountsMatchABruteWalk) {
  for (std::vector<double> weights : {std::vector<double>{1}, {1, 1}, {0.7, 0.2, 0.1}, {1e-3, 1, 0.5, 0.33}}) {
    Blend blend(weights);
    std::vector<int64_t> taken(weights.size(), 0);
    double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (int64_t k = 0; k < 2 * Blend::kSlots + 17; ++k) {
      Blend::Pick pick = blend.at(k);
      ASSERT_EQ(pick.index, taken[static_cast<size_t>(pick.source)]++) << k;
      for (size_t i = 0; i < weights.size(); ++i)  // never far from the share, at any time
        ASSERT_NEAR(static_cast<double>(taken[i]), weights[i] / sum * static_cast<double>(k + 1), 4) << k;
    }
  }
}

TEST(Blend, PercentagesAreExact) {
  Blend blend(std::vector<double>{0.7, 0.2, 0.1});
  std::vector<int64_t> taken(3, 0);
  for (int64_t k = 0; k < Blend::kSlots; ++k) ++taken[static_cast<size_t>(blend.at(k).source)];
  EXPECT_EQ(taken, (std::vector<int64_t>{7000, 2000, 1000}));
  // Far into a run, positions still follow without walking there.
  int64_t far = int64_t{1'000'000'000'000} * Blend::kSlots;
  Blend::Pick pick = blend.at(far);
  EXPECT_EQ(pick.source, blend.at(0).source);
  EXPECT_EQ(pick.index, int64_t{1'000'000'000'000} * taken[static_cast<size_t>(pick.source)]);
}

// At every moment, not only after a period, and against the weights themselves, not their rounded shares.
TEST(Blend, ExactPeriodsKeepEverySourceWithinASampleOfItsShare) {
  for (auto& [weights, period] : std::vector<std::pair<std::vector<double>, int64_t>>{{{1, 1, 1}, 3},
                                                                                      {{3, 1}, 4},
                                                                                      {{0.6, 0.25, 0.15}, 20},
                                                                                      {{0.7, 0.2, 0.1}, 10},
                                                                                      {{1, 2, 3, 4, 5, 6, 7}, 28},
                                                                                      {{97, 1, 1, 1}, 100},
                                                                                      {{1.0 / 3, 2.0 / 3}, 3},
                                                                                      {{0.1234, 0.8766}, 5000}}) {
    ASSERT_EQ(Blend::exact_period(weights), period);
    Blend blend(weights, period);
    double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    std::vector<int64_t> taken(weights.size(), 0);
    for (int64_t k = 0; k < 30000; ++k) {
      ++taken[static_cast<size_t>(blend.at(k).source)];
      for (size_t i = 0; i < weights.size(); ++i) {
        double away = std::abs(static_cast<double>(taken[i]) - weights[i] / sum * static_cast<double>(k + 1));
        ASSERT_LT(away, (k + 1) % period == 0 ? 1e-6 : 1.0) << "source " << i << " after " << k + 1;
      }
    }
  }
  EXPECT_EQ(Blend::exact_period(std::vector<double>{1, 3.14159265}), Blend::kSlots);
}

TEST(Blend, ImpossibleWeightsAreRefused) {
  for (std::vector<double> weights : {std::vector<double>{1, 0}, {1, -1}, {1, std::nan("")}, {1, INFINITY}})
    EXPECT_TRUE(says(complaint_of([&] { Blend blend(weights); }), {"weight", "positive"}));
  EXPECT_TRUE(says(complaint_of([] { Blend blend(std::vector<double>{1, 1e-6}); }), {"source 1", "too little"}));
}

}  // namespace
}  // namespace sextant
