// The collectives held to what they promise, over any transport: every rank calls these with its own transport, alike.
// A check that fails throws CheckFailed. Each rank can make the data of all others, so it knows the truth by itself.
#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/bf16.h"
#include "base/rng.h"
#include "comm/collectives.h"

namespace sextant::checks {

struct CheckFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class... Args>
void require(bool holds, fmt::format_string<Args...> text, Args&&... args) {
  if (!holds) throw CheckFailed(fmt::format(text, std::forward<Args>(args)...));
}

template <class T>
std::span<std::byte> bytes_of(std::vector<T>& values) {
  return std::as_writable_bytes(std::span<T>(values));
}

template <class T>
void require_same_bits(const std::vector<T>& got, const std::vector<T>& expected, const char* what,
                       const Group& group) {
  bool same = got.size() == expected.size() &&
              (got.empty() || std::memcmp(got.data(), expected.data(), got.size() * sizeof(T)) == 0);
  require(same, "{}: wrong result on rank {} of a group of {}", what, group.ranks[static_cast<size_t>(group.self)],
          group.size());
}

inline void require_bytes(int64_t got, int64_t expected, const char* what, const Group& group) {
  require(got == expected, "{}: {} bytes sent in a group of {}, not {}", what, got, group.size(), expected);
}

// Small whole numbers: exactly summable in every type, in any order.
template <class T>
std::vector<T> whole_numbers(int rank, int64_t count) {
  std::vector<T> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    values[static_cast<size_t>(i)] = static_cast<T>((rank * 31 + i * 7 + i * i * rank) % 17 - 8);
  return values;
}

// Numbers of very different sizes: their sum depends on the order.
template <class T>
std::vector<T> wild_numbers(int rank, int64_t count) {
  Random random(7, "wild", static_cast<uint64_t>(rank));
  std::vector<T> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<T>(random.normal(2 * i) * std::exp2(static_cast<double>(random.below(2 * i + 1, 30))));
  return values;
}

// bf16 by slow means: of the two neighbours of an f32 the nearer, of equally near ones the even.
struct SlowBf16 {
  uint16_t bits = 0;
  SlowBf16() = default;
  explicit SlowBf16(double value) {
    float below = static_cast<float>(value);
    bits = static_cast<uint16_t>(std::bit_cast<uint32_t>(below) >> 16);  // towards zero
    auto distance = [&](int up) {
      return std::abs(double{bf16_value(static_cast<uint16_t>(bits + up))} - double{below});
    };
    if (distance(1) < distance(0) || (distance(1) == distance(0) && bits % 2 == 1)) ++bits;
  }
  double value() const { return bf16_value(bits); }
  friend SlowBf16 operator+(SlowBf16 a, SlowBf16 b) {
    return SlowBf16(double{static_cast<float>(a.value()) + static_cast<float>(b.value())});
  }
  friend bool operator<(SlowBf16 a, SlowBf16 b) { return a.value() < b.value(); }
};

template <class T>
using Maker = std::vector<T> (*)(int rank, int64_t count);

// The terms of all members combined one after the other, in group order.
template <class T>
std::vector<T> combined(const Group& group, int64_t count, Maker<T> make, Reduction reduction) {
  std::vector<T> total = make(group.ranks[0], count);
  for (size_t member = 1; member < group.ranks.size(); ++member) {
    std::vector<T> term = make(group.ranks[member], count);
    for (size_t i = 0; i < total.size(); ++i)
      total[i] = reduction == Reduction::sum ? static_cast<T>(total[i] + term[i]) : std::max(total[i], term[i]);
  }
  return total;
}

inline void check_all_gather(Transport& transport, const Group& group, int64_t count) {
  int64_t n = group.size();
  std::vector<int32_t> expected;
  for (int rank : group.ranks) {
    std::vector<int32_t> part = whole_numbers<int32_t>(rank, count);
    expected.insert(expected.end(), part.begin(), part.end());
  }
  Channel channel{transport, 1};
  std::vector<int32_t> own = whole_numbers<int32_t>(transport.rank(), count), whole(expected.size(), -99);
  all_gather(channel, group, bytes_of(own), bytes_of(whole));
  require_same_bits(whole, expected, "all-gather", group);
  require_bytes(channel.bytes_sent, (n - 1) * count * 4, "all-gather", group);

  std::fill(whole.begin(), whole.end(), -99);
  std::span<int32_t> place =
      std::span(whole).subspan(static_cast<size_t>(group.self * count), static_cast<size_t>(count));
  std::copy(own.begin(), own.end(), place.begin());
  all_gather(channel, group, std::as_bytes(place), bytes_of(whole));
  require_same_bits(whole, expected, "all-gather in place", group);
}

inline void check_all_to_all(Transport& transport, const Group& group, int64_t count) {
  int64_t n = group.size();
  std::vector<int32_t> parts, expected, received(static_cast<size_t>(n * count), -99);
  auto message = [&](int from, int to) { return whole_numbers<int32_t>(from * 100 + to, count); };
  for (int other : group.ranks) {
    std::vector<int32_t> out = message(transport.rank(), other), in = message(other, transport.rank());
    parts.insert(parts.end(), out.begin(), out.end());
    expected.insert(expected.end(), in.begin(), in.end());
  }
  Channel channel{transport, 2};
  all_to_all(channel, group, bytes_of(parts), bytes_of(received));
  require_same_bits(received, expected, "all-to-all", group);
  require_bytes(channel.bytes_sent, (n - 1) * count * 4, "all-to-all", group);
}

template <class T>
struct Reduced {
  DType dtype;
  Maker<T> make;
  Reduction reduction = Reduction::sum;
};

template <class T>
void check_reduce_scatter(Transport& transport, const Group& group, int64_t count, const Reduced<T>& how) {
  int64_t n = group.size();
  std::vector<T> whole = combined<T>(group, n * count, how.make, how.reduction);
  std::vector<T> expected(whole.begin() + group.self * count, whole.begin() + (group.self + 1) * count);
  std::vector<T> parts = how.make(transport.rank(), n * count), before = parts;
  std::vector<T> own(static_cast<size_t>(count)), scratch(static_cast<size_t>(count));
  Channel channel{transport, 3};
  reduce_scatter(channel, group, {bytes_of(parts), bytes_of(own), bytes_of(scratch), how.dtype, how.reduction});
  require_same_bits(own, expected, "reduce-scatter", group);
  require_same_bits(parts, before, "operand of reduce-scatter", group);
  require_bytes(channel.bytes_sent, (n - 1) * count * static_cast<int64_t>(sizeof(T)), "reduce-scatter", group);
}

template <class T>
void check_all_reduce(Transport& transport, const Group& group, int64_t count, const Reduced<T>& how) {
  int64_t n = group.size(), own = part_of(count, group.size(), group.self).count;
  std::vector<T> expected = combined<T>(group, count, how.make, how.reduction);
  std::vector<T> data = how.make(transport.rank(), count);
  std::vector<std::byte> scratch(static_cast<size_t>(all_reduce_scratch(count, how.dtype, group.size())));
  Channel channel{transport, 4};
  all_reduce(channel, group, {bytes_of(data), scratch, how.dtype, how.reduction});
  require_same_bits(data, expected, "all-reduce", group);
  int64_t elements = n == 1 ? 0 : (count - own) + (n - 1) * own;  // 2 (n−1)/n of the whole where n divides it
  require_bytes(channel.bytes_sent, elements * static_cast<int64_t>(sizeof(T)), "all-reduce", group);
  require_bytes(all_reduce_bytes_sent(count, how.dtype, group), channel.bytes_sent, "all-reduce, as predicted,", group);
}

template <class T>
void check_reductions(Transport& transport, const Group& group, int64_t count, DType dtype, Maker<T> make) {
  for (Reduction reduction : {Reduction::sum, Reduction::max}) {
    check_reduce_scatter<T>(transport, group, count, {dtype, make, reduction});
    check_all_reduce<T>(transport, group, count, {dtype, make, reduction});
  }
}

// One rank's NaN must not be lost, whichever it is: it is how an overflow is found.
inline void check_max_keeps_nan(Transport& transport, const Group& group) {
  for (int sick = 0; sick < group.size(); ++sick) {
    std::vector<float> data{group.self == sick ? std::numeric_limits<float>::quiet_NaN() : 1.0f};
    std::vector<float> scratch(2);
    Channel channel{transport, 4};
    all_reduce(channel, group, {bytes_of(data), bytes_of(scratch), DType::f32, Reduction::max});
    require(data[0] != data[0], "max lost the NaN of member {} of {}", sick, group.size());
    for (Reduction reduction : {Reduction::sum, Reduction::max}) {
      std::vector<uint16_t> halves{bf16_bits(group.self == sick ? std::numeric_limits<float>::quiet_NaN() : 1.0f)};
      all_reduce(channel, group, {bytes_of(halves), bytes_of(scratch), DType::bf16, reduction});
      float value = bf16_value(halves[0]);
      require(value != value, "bf16 lost the NaN of member {} of {}", sick, group.size());
    }
  }
}

inline void check_broadcast(Transport& transport, const Group& group, int64_t count) {
  for (int root = 0; root < group.size(); ++root) {
    std::vector<int64_t> expected = whole_numbers<int64_t>(group.ranks[static_cast<size_t>(root)], count);
    std::vector<int64_t> data = whole_numbers<int64_t>(transport.rank(), count);
    Channel channel{transport, 5};
    broadcast(channel, group, bytes_of(data), root);
    require_same_bits(data, expected, "broadcast", group);
    require_bytes(channel.bytes_sent, group.self == root ? (group.size() - 1) * count * 8 : 0, "broadcast", group);
  }
}

// Each member in turn comes late: nobody leaves before it has come. All clocks are those of one machine.
inline void check_barrier(Transport& transport, const Group& group) {
  auto now = [] { return std::chrono::steady_clock::now().time_since_epoch().count(); };
  Channel channel{transport, 6};
  for (int late = 0; late < group.size(); ++late) {
    if (group.self == late) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::vector<int64_t> came{now()};
    barrier(channel, group);
    int64_t left = now();
    broadcast(channel, group, bytes_of(came), late);
    require(left >= came[0], "rank {} left a barrier {} ns early", transport.rank(), came[0] - left);
  }
}

inline void check_group(Transport& transport, const Group& group) {
  for (int64_t count : {0, 1, 3, 8, 1000}) {
    check_all_gather(transport, group, count);
    check_all_to_all(transport, group, count);
    check_broadcast(transport, group, count);
    check_reductions<float>(transport, group, count, DType::f32, whole_numbers<float>);
    check_reductions<double>(transport, group, count, DType::f64, whole_numbers<double>);
    check_reductions<int32_t>(transport, group, count, DType::i32, whole_numbers<int32_t>);
    check_reductions<int64_t>(transport, group, count, DType::i64, whole_numbers<int64_t>);
    check_reductions<float>(transport, group, count, DType::f32, wild_numbers<float>);
    check_reductions<double>(transport, group, count, DType::f64, wild_numbers<double>);
    check_reductions<SlowBf16>(transport, group, count, DType::bf16, wild_numbers<SlowBf16>);
  }
  check_max_keeps_nan(transport, group);
  check_barrier(transport, group);
}

// Every rank in one group, forwards and backwards; then the even ranks and the odd ones side by side.
inline void check_collectives(Transport& transport) {
  std::vector<int> all(static_cast<size_t>(transport.size())), alternate;
  std::iota(all.begin(), all.end(), 0);
  for (int rank : all)
    if (rank % 2 == transport.rank() % 2) alternate.push_back(rank);
  check_group(transport, group_of_ranks(all, transport.rank()));
  check_group(transport, group_of_ranks(alternate, transport.rank()));
  check_all_reduce<float>(transport, group_of_ranks({all.rbegin(), all.rend()}, transport.rank()), 100,
                          {DType::f32, wild_numbers<float>});
}

}  // namespace sextant::checks
