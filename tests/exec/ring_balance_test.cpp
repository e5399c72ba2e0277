// How the ranks of a ring share the work of attention over documents: in either order all of it is done once, and as
// stripes every rank has the same at every step.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/rng.h"
#include "exec/cpu/kernels/attend.h"
#include "exec/ring_pieces.h"

namespace sextant {
namespace {

constexpr int64_t kLength = 8192, kMeanDocument = 1000;

// Where each position's document begins; documents are drawn from half to one and a half times their mean.
std::vector<int32_t> begins_of(uint64_t sequence) {
  Random random(sequence, "documents");
  std::vector<int32_t> begins;
  for (uint64_t i = 0; static_cast<int64_t>(begins.size()) < kLength; ++i) {
    auto first = static_cast<int32_t>(begins.size());
    int64_t length = kMeanDocument / 2 + static_cast<int64_t>(random.bits(i) % kMeanDocument);
    begins.insert(begins.end(), static_cast<size_t>(std::min(length, kLength - first)), first);
  }
  return begins;
}

// Queries and keys that meet at a step of one rank, as its kernels find them.
int64_t work_of(const std::vector<PiecePair>& pairs, const std::vector<int32_t>& begins, KeyRange range) {
  int64_t work = 0;
  for (const PiecePair& pair : pairs) {
    std::vector<int32_t> own;
    for (int64_t i = 0; i < pair.q.count; ++i) own.push_back(begins[static_cast<size_t>(pair.q.global_at(i))]);
    cpu::FirstKeys first{own.data(), {pair.distance(), pair.k.global, pair.q.stride}, range};
    for (int64_t i = 0; i < pair.q.count; ++i)
      work += std::max<int64_t>(0, std::min(pair.k.count, i + pair.diagonal + 1) - first.of(i));
  }
  return work;
}

struct Shared {
  int64_t all = 0, busiest = 0;  // of all steps: everybody's work, and that of each step's busiest rank
};

Shared share(int ranks, AxisState state, const std::vector<int32_t>& begins, KeyRange range) {
  Mesh mesh{{{"cp", ranks}}};
  Layout layout{.states = {state}};
  std::vector<std::vector<Span>> spans;
  for (int rank = 0; rank < ranks; ++rank) spans.push_back(held(kLength, layout, 0, mesh, {rank}));
  Shared shared;
  for (int step = 0; step < ranks; ++step) {
    int64_t busiest = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const std::vector<Span>& visitor = spans[static_cast<size_t>((rank - step + ranks) % ranks)];
      int64_t work = work_of(visible_pairs(spans[static_cast<size_t>(rank)], visitor, range), begins, range);
      shared.all += work;
      busiest = std::max(busiest, work);
    }
    shared.busiest += busiest;
  }
  return shared;
}

int64_t pairs_that_see(const std::vector<int32_t>& begins, KeyRange range) {
  int64_t pairs = 0;
  for (int64_t i = 0; i < kLength; ++i)
    pairs += i + 1 - std::max<int64_t>(begins[static_cast<size_t>(i)], range.first(i));
  return pairs;
}

TEST(RingBalance, EveryPairMeetsOnce) {
  for (KeyRange range : {KeyRange{}, KeyRange{.window = 300}, KeyRange{.chunk = 700}})
    for (int ranks : {2, 4, 8})
      for (AxisState state : {zigzag(0), striped(0)}) {
        std::vector<int32_t> begins = begins_of(1);
        EXPECT_EQ(share(ranks, state, begins, range).all, pairs_that_see(begins, range))
            << ranks << " ranks, " << state.text() << ", window " << range.window << ", chunk " << range.chunk;
      }
}

TEST(RingBalance, StripesShareDocumentsEvenly) {
  for (int ranks : {2, 4, 8}) {
    double busiest[2] = {}, even[2] = {};
    for (uint64_t sequence = 0; sequence < 8; ++sequence)
      for (size_t order : {size_t{0}, size_t{1}}) {
        Shared shared = share(ranks, order == 0 ? zigzag(0) : striped(0), begins_of(sequence), {});
        busiest[order] += static_cast<double>(shared.busiest);
        even[order] += static_cast<double>(shared.all) / ranks;
      }
    fmt::print("  {} ranks: the busiest has {:.3f} times the mean work in zigzag order, {:.3f} times as stripes\n",
               ranks, busiest[0] / even[0], busiest[1] / even[1]);
    EXPECT_GT(busiest[0] / even[0], ranks == 2 ? 1.05 : 1.4);
    EXPECT_LT(busiest[1] / even[1], 1.01);
  }
}

// Without documents either order is even but for the diagonal, which is one pair a query.
TEST(RingBalance, OneDocumentIsEvenInEitherOrder) {
  const std::vector<int32_t> begins(kLength, 0);
  for (AxisState state : {zigzag(0), striped(0)}) {
    Shared shared = share(4, state, begins, {});
    EXPECT_LT(static_cast<double>(shared.busiest) * 4 / static_cast<double>(shared.all), 1.001) << state.text();
  }
}

}  // namespace
}  // namespace sextant
