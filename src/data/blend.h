// Several sources mixed by weight, as a formula. Enter weights; leaves, for any number k, the source of the run's k-th
// sample and how many came from that source before it, in O(1). The mix repeats with a period of `slots` samples, in
// which every source has its share (rounded to 1/slots) spread as evenly as whole samples allow: at no time is it a
// whole sample away from its share.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sextant {

class Blend {
 public:
  static constexpr int64_t kSlots = 10000;  // shares of up to four decimals are exact

  // UserError for a weight that is not positive, or whose share is less than a slot.
  explicit Blend(std::span<const double> weights, int64_t slots = kSlots);

  // The shortest period in which the shares are whole numbers of samples, so that nothing is rounded: 4 for 3:1, 3 for
  // three equal weights. kSlots where there is none up to that.
  static int64_t exact_period(std::span<const double> weights);

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
