// A shuffle that is a formula: a bijection of [0, n) chosen by a key, computed for any index in O(1) without a table.
// The index is written as (row, column) of a grid with at least n cells, and a Feistel network adds to each, in turn,
// a keyed function of the other: every round can be undone, so the whole is a bijection of the grid. An index that
// lands outside [0, n) walks on until it is inside, which keeps it a bijection of [0, n) (Black and Rogaway, "Ciphers
// with arbitrary finite domains", 2002). The grid is as square as it can be and has fewer than √n + 1 cells to spare.
#pragma once

#include <array>
#include <cstdint>

namespace sextant {

class Permutation {
 public:
  Permutation(int64_t n, uint64_t key);  // 1 <= n <= 2^62

  int64_t size() const { return static_cast<int64_t>(n_); }
  int64_t operator()(int64_t i) const;

 private:
  static constexpr int kRounds = 8;  // even: each round changes the row or the column

  uint64_t walk_once(uint64_t i) const;

  uint64_t n_;
  uint64_t rows_, columns_;
  std::array<uint64_t, kRounds> round_keys_;
};

}  // namespace sextant
