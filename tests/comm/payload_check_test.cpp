// Checks of collectives: what arrives is what was sent, and sums are those of their terms.
#include "comm/payload_check.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "base/bf16.h"
#include "base/rng.h"
#include "comm/collective_checks.h"
#include "comm/run_ranks.h"
#include "comm/sum_check.h"

namespace sextant {
namespace {

constexpr std::chrono::seconds kPayloadTimeout{20};
constexpr int kPayloadRanks = 3, kPayloadVictim = 1;
constexpr size_t kPayloadCount = 30;

using CheckedCollective = void (*)(Channel& channel, const Group& group);

std::vector<float> own_numbers(int rank) {
  std::vector<float> numbers(kPayloadCount);
  for (size_t i = 0; i < kPayloadCount; ++i) numbers[i] = static_cast<float>(rank + 1) + static_cast<float>(i) / 7;
  return numbers;
}

// A guard each, as what owns the bytes of messages has one: a rank that finds other bytes leaves while others still
// read its own.
void reduce_all(Channel& channel, const Group& group) {
  std::vector<float> data = own_numbers(group.self), scratch(2 * kPayloadCount);
  AbortOnThrow guard(channel.transport);
  all_reduce(channel, group, {checks::bytes_of(data), checks::bytes_of(scratch)});
}
void gather_all(Channel& channel, const Group& group) {
  std::vector<float> own = own_numbers(group.self), whole(kPayloadCount * kPayloadRanks);
  AbortOnThrow guard(channel.transport);
  all_gather(channel, group, std::as_bytes(std::span(own)), checks::bytes_of(whole));
}
void scatter_sums(Channel& channel, const Group& group) {
  std::vector<float> parts = own_numbers(group.self), own(kPayloadCount / kPayloadRanks),
                     scratch(kPayloadCount / kPayloadRanks);
  AbortOnThrow guard(channel.transport);
  reduce_scatter(channel, group, {std::as_bytes(std::span(parts)), checks::bytes_of(own), checks::bytes_of(scratch)});
}
void exchange_all(Channel& channel, const Group& group) {
  std::vector<float> parts = own_numbers(group.self), received(kPayloadCount);
  AbortOnThrow guard(channel.transport);
  all_to_all(channel, group, std::as_bytes(std::span(parts)), checks::bytes_of(received));
}

// Three of them, so that what is kept between collectives is used again.
std::vector<RankEnd> run_checked(CheckedCollective collective, bool verify, bool flip) {
  ThreadHub hub(kPayloadRanks, kPayloadTimeout);
  return run_ranks(hub, kPayloadRanks, [&](Transport& transport) {
    Channel channel{.transport = transport};
    PayloadCheck check(kPayloadRanks);
    const std::string place = "a collective";
    for (int time = 0; time < 3; ++time) {
      check.begin(channel, {.verify = verify, .flip = flip && time == 2 && transport.rank() == kPayloadVictim}, place);
      collective(channel, group_of_ranks({0, 1, 2}, transport.rank()));
    }
  });
}

TEST(PayloadCheck, AFlippedBitIsFoundByTheRankThatReceivedIt) {
  for (CheckedCollective collective : {reduce_all, gather_all, scatter_sums, exchange_all}) {
    for (const RankEnd& end : run_checked(collective, true, false)) EXPECT_EQ(end.error, "");
    for (const RankEnd& end : run_checked(collective, false, true)) EXPECT_EQ(end.error, "") << "nobody looks";
    std::string said = run_checked(collective, true, true)[kPayloadVictim].error;
    EXPECT_NE(said.find("a collective: rank 1 received"), std::string::npos) << said;
    EXPECT_NE(said.find("not those that were sent"), std::string::npos) << said;
  }
}

template <class T>
struct Terms {
  DType dtype;
  T (*number)(double);
  int lowest_found;  // bit of an element
};

template <class T>
std::vector<T> term(const Terms<T>& terms, uint64_t stream, size_t count) {
  Random random(7, "terms", stream);
  std::vector<T> drawn;
  for (size_t i = 0; i < count; ++i) drawn.push_back(terms.number(random.normal(i)));
  return drawn;
}

template <class T>
std::span<const std::byte> as_bytes_of(const std::vector<T>& numbers) {
  return std::as_bytes(std::span(numbers));
}

// `add` is how two elements are added; `flip` of one element of the sum, from the lowest bit on that must be found.
template <class T, class Add>
void expect_sums_checked(const Terms<T>& terms, const Add& add) {
  constexpr size_t kElements = 1000;
  for (int ranks : {2, 5, 64}) {
    SumCheck check(terms.dtype, 3);
    std::vector<T> sum = term(terms, 0, kElements);
    check.add(as_bytes_of(sum));
    for (int rank = 1; rank < ranks; ++rank) {
      std::vector<T> next = term(terms, static_cast<uint64_t>(rank), kElements);
      check.add(as_bytes_of(next));
      for (size_t i = 0; i < kElements; ++i) sum[i] = add(sum[i], next[i]);
    }
    EXPECT_FALSE(check.fault_in(as_bytes_of(sum))) << name_of(terms.dtype) << ", " << ranks;
    using Bits = std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;
    for (int bit = terms.lowest_found; bit < static_cast<int>(8 * sizeof(T)); ++bit) {
      std::vector<T> wrong = sum;
      wrong[17] = std::bit_cast<T>(static_cast<Bits>(std::bit_cast<Bits>(wrong[17]) ^ (Bits{1} << bit)));
      EXPECT_TRUE(check.fault_in(as_bytes_of(wrong))) << name_of(terms.dtype) << ", " << ranks << " ranks, bit " << bit;
    }
  }
}

TEST(SumCheck, RightSumsPassAndFlippedBitsAreFound) {
  expect_sums_checked<float>({DType::f32, [](double x) { return static_cast<float>(x); }, 21}, std::plus<float>());
  expect_sums_checked<double>({DType::f64, [](double x) { return x; }, 50}, std::plus<double>());
  expect_sums_checked<int32_t>({DType::i32, [](double x) { return static_cast<int32_t>(1000 * x); }, 0},
                               std::plus<int32_t>());
  expect_sums_checked<int64_t>({DType::i64, [](double x) { return static_cast<int64_t>(1e12 * x); }, 0},
                               std::plus<int64_t>());
}

// Each sum of two is rounded to eight bits: what is found of sixty-four terms is of that size.
TEST(SumCheck, SumsOfBf16Pass) {
  expect_sums_checked<uint16_t>({DType::bf16, [](double x) { return bf16_bits(static_cast<float>(x)); }, 16},
                                [](uint16_t a, uint16_t b) { return bf16_bits(bf16_value(a) + bf16_value(b)); });
  std::vector<uint16_t> sum(1000, bf16_bits(2)), half(1000, bf16_bits(1));
  SumCheck check(DType::bf16, 3);
  check.add(as_bytes_of(half));
  check.add(as_bytes_of(half));
  EXPECT_FALSE(check.fault_in(as_bytes_of(sum)));
  sum[5] = bf16_bits(2e3f);
  EXPECT_TRUE(check.fault_in(as_bytes_of(sum)));
}

TEST(SumCheck, WhatIsNotFiniteSaysNothing) {
  std::vector<float> one(8, 1.0f), other(8, std::nanf("")), sum(8, 5.0f);
  SumCheck check(DType::f32, 1);
  check.add(as_bytes_of(one));
  check.add(as_bytes_of(other));
  EXPECT_FALSE(check.fault_in(as_bytes_of(sum)));
}

}  // namespace
}  // namespace sextant
