#include "data/permutation.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/rng.h"

namespace sextant {

namespace {

uint64_t ceil_sqrt(uint64_t n) {
  auto root = static_cast<uint64_t>(std::sqrt(static_cast<double>(n)));
  while (root * root < n) ++root;
  while (root > 1 && (root - 1) * (root - 1) >= n) --root;
  return root;
}

// A keyed hash of x, in [0, n) for n < 2^32: the finaliser of splitmix64, then its upper half times n, which needs no
// division.
uint64_t hash_below(uint64_t x, uint64_t key, uint64_t n) {
  x ^= key;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return ((x >> 32) * n) >> 32;
}

uint64_t add_modulo(uint64_t a, uint64_t b, uint64_t n) {
  return a + b < n ? a + b : a + b - n;
}

}  // namespace

Permutation::Permutation(int64_t n, uint64_t key) : n_(static_cast<uint64_t>(n)) {
  BUG_IF(n < 1 || n > int64_t{1} << 62, "a permutation of {} elements", n);
  rows_ = std::max(uint64_t{1}, ceil_sqrt(n_));
  columns_ = (n_ + rows_ - 1) / rows_;
  for (size_t round = 0; round < kRounds; round += 2) {
    auto bits = philox(key, 0, round);
    round_keys_[round] = (uint64_t{bits[1]} << 32) | bits[0];
    round_keys_[round + 1] = (uint64_t{bits[3]} << 32) | bits[2];
  }
}

int64_t Permutation::operator()(int64_t i) const {
  BUG_IF(i < 0 || i >= size(), "index {} of a permutation of {}", i, n_);
  auto x = static_cast<uint64_t>(i);
  do x = walk_once(x);
  while (x >= n_);
  return static_cast<int64_t>(x);
}

uint64_t Permutation::walk_once(uint64_t i) const {
  uint64_t row = i / columns_, column = i % columns_;
  for (size_t round = 0; round < kRounds; round += 2) {
    row = add_modulo(row, hash_below(column, round_keys_[round], rows_), rows_);
    column = add_modulo(column, hash_below(row, round_keys_[round + 1], columns_), columns_);
  }
  return row * columns_ + column;
}

}  // namespace sextant
