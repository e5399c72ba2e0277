// Statistics of repeated timings. In: seconds of single calls. Out: their median, best and spread, an interval for the
// median, and whether two sets differ beyond chance. Also the loop that takes the timings: it warms up until times
// settle, then repeats until the result is precise enough.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "bench/stop.h"

namespace sextant {

struct Summary {
  int64_t count = 0;
  double mean = 0, median = 0, best = 0, worst = 0;
  double spread = 0;  // median absolute deviation × 1.4826: a standard deviation that a few bad calls do not move
  double low = 0, high = 0;  // the median lies between them, with 95 % confidence (order statistics)
  bool operator==(const Summary&) const = default;
};
Summary summary_of(std::span<const double> samples);

// Between the samples in order, linearly; 0 of none.
double quantile_of(std::vector<double> samples, double share);

// Mann–Whitney's test that two sets come from the same distribution, two-sided: exact for small sets without ties, else
// by the normal approximation with ties and continuity corrected. 1 when either is empty.
double mann_whitney_p(std::span<const double> a, std::span<const double> b);

struct Repeat {
  int least = 10;  // calls
  int most = 1000;
  double seconds = 0.3;     // of calls, beyond which only `least` counts
  double warm_seconds = 2;  // at most; warming ends sooner when times have settled
};

// Calls until the last ones take no less than those before them, within a few per cent, or warm_seconds have passed.
void warm_up(const std::function<double()>& call, const Repeat& repeat, const Watch& watch);

// Warms up and repeats; `call` returns its own seconds. Stopped early, it has what it has.
std::vector<double> repeated(const std::function<double()>& call, const Repeat& repeat, const Watch& watch);

// The same for what is best called several times at once: calls(n) returns n times.
std::vector<double> repeated_together(const std::function<std::vector<double>(int)>& calls, const Repeat& repeat,
                                      const Watch& watch);

}  // namespace sextant
