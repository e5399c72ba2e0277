#include "propose/expected_loss.h"

#include <algorithm>
#include <cmath>

namespace sextant {

namespace {

// Fitted by bench/fit_small_runs.py, with the exponents of Hoffmann et al. 2022 (arXiv:2203.15556).
constexpr double kE = 1.02, kA = 16.44, kAlpha = 0.34, kB = 55.99, kBeta = 0.28;

// Below it nothing has been learned but how often each letter stands.
constexpr double kMost = 4.5;

double effective_bytes(const SmallRun& run) {
  constexpr double kRepeats = 15.39;
  if (run.unique_bytes <= 0 || run.trained_bytes <= run.unique_bytes) return run.trained_bytes;
  double repeats = run.trained_bytes / run.unique_bytes - 1;
  return run.unique_bytes * (1 + kRepeats * (1 - std::exp(-repeats / kRepeats)));
}

}  // namespace

double expected_bits_per_byte(const SmallRun& run) {
  double loss = kE + kA / std::pow(std::max(run.parameters, 1.0), kAlpha) +
                kB / std::pow(std::max(effective_bytes(run), 1.0), kBeta);
  return std::min(loss, kMost);
}

std::string_view what_it_writes(double bits_per_byte) {
  if (bits_per_byte > 2.4) return "letters and pieces of words, no text to read";
  if (bits_per_byte > 1.9) return "words and phrases of the text, seldom a sentence that makes sense";
  if (bits_per_byte > 1.5) return "sentences that are mostly grammatical and make little sense";
  return "readable sentences";
}

}  // namespace sextant
