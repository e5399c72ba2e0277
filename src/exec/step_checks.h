// StepChecks: which ops of a step are checked while they run, and what is spoiled on purpose. An op is chosen by a draw
// from the seed, the step and the op's own name: the same on every mesh, and again when the step is repeated.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/rng.h"

namespace sextant {

struct StepChecks {
  uint64_t seed = 0;
  int64_t step = 0;
  double gemms = 0, collectives = 0;  // shares of them
  // Drills: a bit of one product's result, of one message that this rank receives.
  bool flips_gemm = false, flips_message = false;

  Random random(std::string_view purpose) const { return {seed, purpose, static_cast<uint64_t>(step)}; }
  bool checks_gemm(uint64_t op) const { return gemms > 0 && random("check_gemms").uniform(op) < gemms; }
  bool checks_collective(uint64_t op) const {
    return collectives > 0 && random("check_collectives").uniform(op) < collectives;
  }
};

}  // namespace sextant
