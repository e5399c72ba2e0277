#include "exec/cpu/kernels/vector_math_word_sums.h"

#include <cstring>

// As vector_math.cpp: compiled once per instruction set.
#define HWY_BROKEN_EMU128 0
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "exec/cpu/kernels/vector_math_word_sums.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr hn::ScalableTag<uint64_t> kPairs;  // of words
constexpr hn::Repartition<uint8_t, decltype(kPairs)> kBytes;
constexpr int64_t kBytesAtOnce = hn::MaxLanes(kBytes);

// The lower and the upper words of pairs.
struct PairSums {
  hn::Vec<decltype(kPairs)> lower, upper;

  HWY_INLINE PairSums() : lower(hn::Zero(kPairs)), upper(hn::Zero(kPairs)) {}
  HWY_INLINE void add(const uint8_t* bytes) {
    auto pairs = hn::BitCast(kPairs, hn::LoadU(kBytes, bytes));
    lower = hn::Add(lower, hn::And(pairs, hn::Set(kPairs, 0xffff'ffffU)));
    upper = hn::Add(upper, hn::ShiftRight<32>(pairs));
  }
};

uint64_t words(const std::byte* bytes, int64_t count) {
  const auto* at = reinterpret_cast<const uint8_t*>(bytes);
  const uint8_t* end = at + count * 4;
  PairSums even, odd;
  for (; end - at >= 2 * kBytesAtOnce; at += 2 * kBytesAtOnce) {
    even.add(at);
    odd.add(at + kBytesAtOnce);
  }
  uint64_t sum =
      hn::GetLane(hn::SumOfLanes(kPairs, hn::Add(hn::Add(even.lower, odd.lower), hn::Add(even.upper, odd.upper))));
  for (; at < end; at += 4) {
    uint32_t word = 0;
    std::memcpy(&word, at, sizeof word);
    sum += word;
  }
  return sum;
}

}  // namespace sextant::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sextant::cpu {

namespace {
HWY_EXPORT(words);
}  // namespace

uint64_t word_sum(const std::byte* bytes, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(words)(bytes, count);
}

}  // namespace sextant::cpu
#endif
