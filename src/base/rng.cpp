#include "base/rng.h"

#include <cmath>
#include <numbers>

namespace sextant {

// Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011): ten rounds of Philox4x32.
std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter_high, uint64_t counter_low) {
  auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  std::array<uint32_t, 4> c{static_cast<uint32_t>(counter_low), static_cast<uint32_t>(counter_low >> 32),
                            static_cast<uint32_t>(counter_high), static_cast<uint32_t>(counter_high >> 32)};
  for (int round = 0; round < 10; ++round) {
    uint64_t a = uint64_t{0xD2511F53} * c[0];
    uint64_t b = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(a)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

uint64_t hash64(std::string_view text, uint64_t seed) {
  uint64_t h = 0xCBF29CE484222325 ^ (seed * 0x9E3779B97F4A7C15);
  for (unsigned char c : text) h = (h ^ c) * 0x100000001B3;
  h ^= h >> 33;
  h *= 0xFF51AFD7ED558CCD;
  h ^= h >> 33;
  h *= 0xC4CEB9FE1A85EC53;
  return h ^ (h >> 33);
}

uint64_t Random::bits(uint64_t i) const {
  auto r = philox(key_, stream_, i);
  return (uint64_t{r[1]} << 32) | r[0];
}

double Random::uniform(uint64_t i) const {
  return static_cast<double>(bits(i) >> 11) * 0x1p-53;
}

double Random::normal(uint64_t i) const {
  auto r = philox(key_, stream_, i);
  double u = (static_cast<double>(r[0]) + 0.5) * 0x1p-32;
  double v = static_cast<double>(r[1]) * 0x1p-32;
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

uint64_t Random::below(uint64_t i, uint64_t n) const {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((static_cast<Wide>(bits(i)) * n) >> 64);
}

}  // namespace sextant
