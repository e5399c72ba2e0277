// The validation loss that a small new model reaches on English text, from a fit of runs of this program
// (data/small_runs.csv). An order of magnitude for those who choose a size; source code and other languages differ.
#pragma once

#include <string_view>

namespace sextant {

struct SmallRun {
  double parameters = 0;     // with embeddings
  double trained_bytes = 0;  // of text that goes by, over all passes
  double unique_bytes = 0;   // of the text; 0: no part of it is seen twice
};

// E + A / parameters^alpha + B / bytes^beta, where repeated text counts less each time (Muennighoff et al. 2023,
// arXiv:2305.16264, equation 5 with their R* = 15.39).
double expected_bits_per_byte(const SmallRun& run);

// Generated text at such a loss, in words.
std::string_view what_it_writes(double bits_per_byte);

}  // namespace sextant
