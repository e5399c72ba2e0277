// Random numbers that depend only on what they are for: Philox4x32-10, keyed by (seed, purpose) and counted by
// (stream, element). The same element of the same tensor gets the same number on every mesh and thread count.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace sextant {

std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter_high, uint64_t counter_low);

// FNV-1a followed by a finaliser: a stable 64-bit name for a string (value paths, file contents).
uint64_t hash64(std::string_view text, uint64_t seed = 0);

// The random numbers of one purpose. `at(i)` may be asked in any order.
class Random {
 public:
  Random(uint64_t seed, std::string_view purpose, uint64_t stream = 0) : key_(hash64(purpose, seed)), stream_(stream) {}

  uint64_t bits(uint64_t i) const;               // uniform 64 bits
  double uniform(uint64_t i) const;              // in [0, 1)
  double normal(uint64_t i) const;               // mean 0, standard deviation 1 (Box–Muller)
  uint64_t below(uint64_t i, uint64_t n) const;  // uniform in [0, n)
  uint64_t key() const { return key_; }
  uint64_t stream() const { return stream_; }

 private:
  uint64_t key_;
  uint64_t stream_;
};

}  // namespace sextant
