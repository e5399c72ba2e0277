// Several sources mixed by weight, as a formula. Enter weights; leaves, for any number k, the source of the run's k-th
// sample and how many came from that source before it, in O(1). The mix repeats with a period of kSlots samples, in
// which every source has its share (rounded to 1/kSlots) spread as evenly as whole samples allow.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sextant {

class Blend {
 public:
  static constexpr int64_t kSlots = 10000;  // shares of up to four decimals are exact

  // UserError for a weight that is not positive, or whose share is less than a slot.
  explicit Blend(std::span<const double> weights);

  struct Pick {
    int source;
    int64_t index;  // of the sample among those of its source
  };
  Pick at(int64_t k) const;

 private:
  std::vector<int64_t> shares_;  // slots of each source in a period
  std::vector<Pick> period_;
};

}  // namespace sextant
