// Which elements dropout leaves out: Philox, keyed by the sequence and counted by site, head, row and column of the
// whole tensor. Whoever holds an element, on whichever mesh and in whichever pass, finds the same answer.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>

#include "base/rng.h"
#include "exec/tensor.h"
#include "ir/attrs.h"

namespace sextant {

// The key of a sequence: `sample` counts the sequences of the whole run, over all steps and ranks.
inline uint64_t dropout_key(uint64_t seed, int64_t sample) {
  return Random(seed, "dropout").bits(static_cast<uint64_t>(sample));
}

// Philox gives four words for one count: neighbouring columns share it.
inline constexpr int64_t kDropoutColumns = 4;

// Of one op, by its attrs `dropout` and `site`. Head is 0 outside attention; there a row is a query, and a column a
// key.
class DropoutMask {
 public:
  explicit DropoutMask(const Attrs& attrs)
      : threshold_(static_cast<uint32_t>(std::min(std::round(attrs.real("dropout") * 0x1p32), 0x1p32 - 1))),
        site_(static_cast<uint64_t>(attrs.integer("site"))),
        factor_(1 / (1 - attrs.real("dropout"))) {}

  uint32_t threshold() const { return threshold_; }
  uint64_t site() const { return site_; }
  double factor() const { return factor_; }  // of what is kept

  // factors[i] of column `first` + i: 0 or factor().
  template <class T>
  void fill(uint64_t key, int64_t head, int64_t row, int64_t first, std::span<T> factors) const {
    auto count = static_cast<int64_t>(factors.size());
    for (int64_t at = 0; at < count;) {
      std::array<uint32_t, 4> words = words_at(key, head, row, first + at);
      int64_t from = (first + at) % kDropoutColumns, end = std::min(count, at + kDropoutColumns - from);
      for (; at < end; ++at)
        factors[static_cast<size_t>(at)] =
            words[static_cast<size_t>(from++)] >= threshold_ ? static_cast<T>(factor_) : T(0);
    }
  }

 private:
  std::array<uint32_t, 4> words_at(uint64_t key, int64_t head, int64_t row, int64_t column) const {
    return philox(key, site_ << 32 | static_cast<uint64_t>(head),
                  static_cast<uint64_t>(row) << 32 | static_cast<uint64_t>(column / kDropoutColumns));
  }

  uint32_t threshold_;
  uint64_t site_;
  double factor_;
};

// The keys of a rank's sequences among the operands of attention: the only 64-bit integers. Null without dropout.
inline const Tensor* dropout_keys(std::span<const Tensor> in) {
  auto at = std::find_if(in.begin(), in.end(), [](const Tensor& tensor) { return tensor.dtype == DType::i64; });
  return at == in.end() ? nullptr : &*at;
}

}  // namespace sextant
