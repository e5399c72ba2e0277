#include "passes/occupancy.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"

namespace sextant {
namespace {

struct Item {
  Lifetime life;
  Stretch bytes;
};

// The definition: look at everything that has been placed.
int64_t lowest_by_looking_at_all(const std::vector<Item>& placed, const Lifetime& life, int64_t from, int64_t bytes) {
  std::vector<Stretch> there;
  for (const Item& other : placed)
    if (life.first <= other.life.last && other.life.first <= life.last) there.push_back(other.bytes);
  std::sort(there.begin(), there.end(), [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; });
  for (const Stretch& s : there) {
    if (s.begin >= from + bytes) break;
    from = std::max(from, s.end);
  }
  return from;
}

TEST(Occupancy, FindsTheLowestPlaceAmongThoseThatLiveAtTheSameTime) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed, "occupancy");
    uint64_t drawn = 0;
    auto below = [&](int64_t n) { return static_cast<int64_t>(random.below(drawn++, static_cast<uint64_t>(n))); };
    int ops = 1 + static_cast<int>(below(70));
    Occupancy occupancy(ops);
    std::vector<Item> placed;
    int64_t base = below(3) * 128;
    for (int i = 0; i < 150; ++i) {
      int first = static_cast<int>(below(ops)), last = first + static_cast<int>(below(ops - first));
      Lifetime life{first, last};
      int64_t bytes = 64 * below(6);
      int64_t expected = lowest_by_looking_at_all(placed, life, base, bytes);
      ASSERT_EQ(occupancy.lowest_gap(life, base, bytes), expected) << "seed " << seed << ", item " << i;
      occupancy.take(life, {expected, expected + bytes});
      if (bytes > 0) placed.push_back({life, {expected, expected + bytes}});
    }
  }
}

}  // namespace
}  // namespace sextant
