// A law of Chinchilla's form fitted to somebody's own runs, as Hoffmann et al. did: the Huber loss of the residuals of
// log L, minimised from many starts. For a fixed (alpha, beta) the rest is linear, so starts come from a grid over
// these two with E, A and B solved for; Levenberg–Marquardt goes on from the best. Intervals are bootstrapped over the
// runs.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "laws/chinchilla.h"
#include "laws/runs_csv.h"

namespace sextant {

struct FitOptions {
  int resamples = 200;
  uint64_t seed = 1;
  double huber_delta = 1e-3;  // of log L; Hoffmann's. Residuals beyond it count by their size, not its square
};

struct LawFit {
  ParametricLaw law;                    // named "your runs"
  std::vector<LawConstants> resamples;  // the law of each resampled set of runs
  int runs = 0;
  double rms_log_error = 0;    // of log L, about the relative error of L
  double largest_compute = 0;  // of any run, 6·N·D: beyond it the law is extrapolated
};

// Runs from which the constants cannot be told are refused, with a UserError that names `place`: fewer than 6, fewer
// than 3 sizes or 3 lengths, or the same tokens per parameter in all.
LawFit fit_law(std::span<const LossRun> runs, std::string_view place = "runs.csv", const FitOptions& options = {});

struct Interval {
  double low = 0, high = 0;
};

// The 5th to 95th percentile, over the resamples, of anything a law predicts.
Interval interval_of(const LawFit& fit, const std::function<double(const ParametricLaw&)>& quantity);

}  // namespace sextant
