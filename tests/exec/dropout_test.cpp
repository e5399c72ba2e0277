// Dropout's mask against Philox written a second time, its statistics, and attention with it against sums written out.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "exec/dropout_mask.h"
#include "kernel_runner.h"
#include "ops/shapes.h"

namespace sextant {
namespace {

// Philox4x32-10 as Salmon et al. (2011) write it: multiply, swap halves, and add the Weyl constants to the key.
std::array<uint32_t, 4> philox_of_the_paper(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    uint64_t first = uint64_t{counter[0]} * 0xD2511F53u, second = uint64_t{counter[2]} * 0xCD9E8D57u;
    counter = {static_cast<uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(second),
               static_cast<uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(first)};
    key = {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
  }
  return counter;
}

struct Place {
  int64_t key, site, head, row, column;
};

// Whether an element is kept, by the contract of the op alone.
bool is_kept(const Place& at, double rate) {
  auto words = philox_of_the_paper({static_cast<uint32_t>(at.column / 4), static_cast<uint32_t>(at.row),
                                    static_cast<uint32_t>(at.head), static_cast<uint32_t>(at.site)},
                                   {static_cast<uint32_t>(at.key), static_cast<uint32_t>(at.key >> 32)});
  return words[static_cast<size_t>(at.column % 4)] >= std::round(rate * 4294967296.0);
}

Attrs dropout_attrs(double rate, int64_t site) {
  return {{"dropout", rate}, {"site", site}};
}

struct Rows {
  int64_t batch = 2, length = 4, width = 6;
  TensorTypes types() const { return {f64({batch, length, width}), i64({batch})}; }
  size_t count() const { return static_cast<size_t>(batch * length * width); }
};

// Ones through the op: the mask itself.
Numbers mask_of(const Rows& rows, const Numbers& keys, double rate, int64_t site, int threads = 1) {
  return run_kernel({.def = ops::dropout,
                     .attrs = dropout_attrs(rate, site),
                     .types = rows.types(),
                     .inputs = {Numbers(rows.count(), 1.0), keys},
                     .threads = threads})[0];
}

TEST(Dropout, PhiloxIsThatOfThePaper) {
  // The published answers for a counter and key of zeros, and of all ones.
  EXPECT_EQ(philox_of_the_paper({0, 0, 0, 0}, {0, 0}),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(0x8070605040302010u, 0x1122334455667788u, 0x99aabbccddeeff00u),
            philox_of_the_paper({0xddeeff00, 0x99aabbcc, 0x55667788, 0x11223344}, {0x40302010, 0x80706050}));
}

TEST(Dropout, MaskIsThatOfTheContract) {
  const Rows rows{3, 37, 70};
  const Numbers keys{12345, 9e15, 7};
  const double rate = 0.3;
  Numbers mask = mask_of(rows, keys, rate, 9);
  for (int64_t b = 0; b < rows.batch; ++b)
    for (int64_t s = 0; s < rows.length; ++s)
      for (int64_t h = 0; h < rows.width; ++h) {
        bool kept = is_kept({static_cast<int64_t>(keys[static_cast<size_t>(b)]), 9, 0, s, h}, rate);
        double got = mask[static_cast<size_t>((b * rows.length + s) * rows.width + h)];
        ASSERT_EQ(got, kept ? 1 / (1 - rate) : 0) << b << " " << s << " " << h;
      }
  EXPECT_EQ(mask_of(rows, keys, rate, 9, 4), mask);
  EXPECT_EQ(mask_of(rows, keys, 0, 9), Numbers(rows.count(), 1.0));
}

// A rank that holds part of the positions and columns finds the part of the mask that belongs to them.
TEST(Dropout, PartsOfTheTensorHaveTheirPartOfTheMask) {
  const DropoutMask mask(dropout_attrs(0.5, 4));
  std::vector<double> whole(64), part(7);
  mask.fill<double>(99, 3, 17, 0, whole);
  for (int64_t first : {0, 1, 2, 3, 5, 30}) {
    mask.fill<double>(99, 3, 17, first, part);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + first)) << first;
  }
}

struct Counts {
  double kept = 0, all = 0, both = 0;  // both: kept in another mask too
};

Counts counts_of(const Numbers& mask, const Numbers& other) {
  Counts counts;
  for (size_t i = 0; i < mask.size(); ++i) {
    counts.all += 1;
    counts.kept += mask[i] != 0 ? 1 : 0;
    counts.both += mask[i] != 0 && other[i] != 0 ? 1 : 0;
  }
  return counts;
}

// Within five standard deviations of a binomial distribution.
void expect_share(double count, double of, double share, std::string_view what) {
  EXPECT_LE(std::abs(count - of * share), 5 * std::sqrt(of * share * (1 - share))) << what;
}

TEST(Dropout, RatesHoldAndMasksAreIndependent) {
  const Rows rows{1, 256, 512};
  for (double rate : {0.1, 0.5, 0.9}) {
    double keep = 1 - rate;
    Numbers first = mask_of(rows, {1000}, rate, 5), next = first;
    std::rotate(next.begin(), next.begin() + 1, next.end());
    Numbers below = first;
    std::rotate(below.begin(), below.begin() + rows.width, below.end());
    Counts own = counts_of(first, first);
    expect_share(own.kept, own.all, keep, "kept");
    struct Other {
      const char* what;
      Numbers mask;
    };
    for (const Other& other : {Other{"the next sequence", mask_of(rows, {1001}, rate, 5)},
                               Other{"the next site", mask_of(rows, {1000}, rate, 6)},
                               Other{"the same site of the next layer", mask_of(rows, {1000}, rate, 9)},
                               Other{"the next column", next}, Other{"the next position", below}})
      expect_share(counts_of(first, other.mask).both, own.all, keep * keep, other.what);
  }
}

TEST(Dropout, KeysDifferBetweenSequencesStepsAndSeeds) {
  std::set<uint64_t> keys;
  for (uint64_t seed : {1, 2})
    for (int64_t sample = 0; sample < 1000; ++sample) keys.insert(dropout_key(seed, sample));
  EXPECT_EQ(keys.size(), 2000u);
}

// Rates so near to 1 that the threshold would not fit 32 bits leave all but nothing.
TEST(Dropout, RatesNextToOneKeepNothingByMistake) {
  Numbers mask = mask_of({1, 64, 64}, {3}, std::nextafter(1.0, 0.0), 1);
  EXPECT_LE(std::count_if(mask.begin(), mask.end(), [](double x) { return x != 0; }), 1);
}

struct Heads {
  int64_t batch = 2, length = 70, heads = 4, kv_heads = 2, dim = 4;
  int64_t width() const { return (heads + 2 * kv_heads) * dim; }
  TensorType qkv() const { return f64({batch, length, width()}); }
  TensorType y() const { return f64({batch, length, heads * dim}); }
  TensorType lse() const { return f64({batch, heads, length}); }
  Attrs attrs(double rate, int64_t site) const {
    Attrs attrs{{"heads", heads}, {"kv_heads", kv_heads}, {"head_dim", dim}};
    if (rate > 0) attrs.set("dropout", rate), attrs.set("site", site);
    return attrs;
  }
};

// Row by row: the softmax of all keys, of which some are then left out.
Numbers attention_by_hand(const Heads& a, const Numbers& qkv, const Numbers& keys, double rate, int64_t site) {
  Numbers y(static_cast<size_t>(a.batch * a.length * a.heads * a.dim), 0);
  auto at = [&](int64_t b, int64_t s, int64_t column) {
    return qkv[static_cast<size_t>((b * a.length + s) * a.width() + column)];
  };
  for (int64_t b = 0; b < a.batch; ++b)
    for (int64_t head = 0; head < a.heads; ++head)
      for (int64_t i = 0; i < a.length; ++i) {
        int64_t kv = head * a.kv_heads / a.heads, k_at = (a.heads + kv) * a.dim,
                v_at = (a.heads + a.kv_heads + kv) * a.dim;
        Numbers weights;
        double sum = 0;
        for (int64_t j = 0; j <= i; ++j) {
          double score = 0;
          for (int64_t d = 0; d < a.dim; ++d) score += at(b, i, head * a.dim + d) * at(b, j, k_at + d);
          weights.push_back(std::exp(score / std::sqrt(static_cast<double>(a.dim))));
          sum += weights.back();
        }
        for (int64_t j = 0; j <= i; ++j) {
          bool kept = is_kept({static_cast<int64_t>(keys[static_cast<size_t>(b)]), site, head, i, j}, rate);
          double weight = kept ? weights[static_cast<size_t>(j)] / sum / (1 - rate) : 0;
          for (int64_t d = 0; d < a.dim; ++d)
            y[static_cast<size_t>(((b * a.length + i) * a.heads + head) * a.dim + d)] += weight * at(b, j, v_at + d);
        }
      }
  return y;
}

TEST(Dropout, AttentionLeavesOutWeightsAfterTheSoftmax) {
  const Heads a;
  const Numbers keys{31, 77};
  Numbers qkv = draw_inputs(ops::attention, {"", {a.qkv()}, a.attrs(0, 0)}, 5)[0];
  auto dropped = run_kernel({.def = ops::attention,
                             .attrs = a.attrs(0.4, 6),
                             .types = {a.qkv(), i64({a.batch})},
                             .inputs = {qkv, keys},
                             .threads = 2});
  EXPECT_LE(relative_error(dropped[0], attention_by_hand(a, qkv, keys, 0.4, 6)), 1e-12);
  auto whole = run_kernel({.def = ops::attention, .attrs = a.attrs(0, 0), .types = {a.qkv()}, .inputs = {qkv}});
  EXPECT_EQ(dropped[1], whole[1]);  // the log-sum-exp is that of the softmax
  EXPECT_GT(relative_error(dropped[0], whole[0]), 0.1);
}

}  // namespace
}  // namespace sextant
