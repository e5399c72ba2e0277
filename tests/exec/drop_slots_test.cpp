// Slots that experts do not take, against a count made for each slot by itself.
#include <gtest/gtest.h>

#include <cmath>

#include "exec/kernel_runner.h"
#include "ops/shapes.h"

namespace sextant {
namespace {

constexpr int64_t kDropSequences = 3, kDropPositions = 20, kDropTopK = 2, kDropExperts = 5;

enum class DropBy : uint8_t { position, weight };

struct AskedSlots {
  Numbers weights, experts;
};

// Some experts are asked for more often; weights are equal here and there.
AskedSlots some_asked_slots() {
  AskedSlots slots;
  for (int64_t i = 0; i < kDropSequences * kDropPositions; ++i) {
    auto first = static_cast<int64_t>(std::abs(std::sin(static_cast<double>(i * 7919))) * 3);
    for (int64_t j = 0; j < kDropTopK; ++j) {
      slots.experts.push_back(static_cast<double>((first + j * (1 + i % 2)) % kDropExperts));
      slots.weights.push_back(std::round(8 * std::abs(std::cos(static_cast<double>(i * 31 + j)))) / 8);
    }
  }
  return slots;
}

std::vector<Numbers> drop_by(const AskedSlots& slots, int64_t capacity, DropBy policy) {
  Attrs attrs{{"capacity", capacity}, {"experts", kDropExperts}};
  if (policy == DropBy::weight) attrs.set("by_weight", int64_t{1});
  return run_kernel(
      {.def = ops::drop_slots,
       .attrs = attrs,
       .types = {f64({kDropSequences, kDropPositions, kDropTopK}), i32({kDropSequences, kDropPositions, kDropTopK})},
       .inputs = {slots.weights, slots.experts},
       .threads = 2});
}

// The slots of its sequence that its expert takes before it.
int64_t asked_before(const AskedSlots& slots, size_t slot, DropBy policy) {
  constexpr size_t kInSequence = kDropPositions * kDropTopK;
  int64_t count = 0;
  for (size_t other = slot / kInSequence * kInSequence; other < (slot / kInSequence + 1) * kInSequence; ++other) {
    if (slots.experts[other] != slots.experts[slot]) continue;
    double more = policy == DropBy::weight ? slots.weights[other] - slots.weights[slot] : 0;
    count += more > 0 || (more == 0 && other < slot) ? 1 : 0;
  }
  return count;
}

TEST(DropSlots, KeepsWhatAnExpertTakesOfEachSequence) {
  AskedSlots slots = some_asked_slots();
  for (DropBy policy : {DropBy::position, DropBy::weight})
    for (int64_t capacity : {1, 2, 7, 8, 11, 40}) {
      SCOPED_TRACE(capacity);
      std::vector<Numbers> kept = drop_by(slots, capacity, policy);
      int64_t dropped = 0;
      for (size_t i = 0; i < slots.weights.size(); ++i) {
        bool stays = asked_before(slots, i, policy) < capacity;
        dropped += stays ? 0 : 1;
        EXPECT_EQ(kept[0][i], stays ? slots.weights[i] : 0) << i;
        EXPECT_EQ(kept[1][i], stays ? slots.experts[i] : -1) << i;
      }
      EXPECT_EQ(kept[2], Numbers{static_cast<double>(dropped)});
      EXPECT_EQ(dropped > 0, capacity < 20);
    }
}

TEST(DropSlots, GiveNoGradient) {
  TensorTypes types{f64({1, 3, 2}), i32({1, 3, 2})};
  EXPECT_EQ(run_kernel({.def = ops::drop_slots_backward,
                        .attrs = {},
                        .types = types,
                        .inputs = {{1, 2, 3, 4, 5, 6}, {0, -1, 2, 3, -1, -1}},
                        .threads = 1})[0],
            (Numbers{1, 0, 3, 4, 0, 0}));
}

}  // namespace
}  // namespace sextant
