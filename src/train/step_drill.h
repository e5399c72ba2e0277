// StepDrill: faults on purpose that a trainer makes in one step (faults/fault.h).
#pragma once

namespace sextant {

struct StepDrill {
  bool spoils_gradients = false;  // they are not finite
  bool flips_gemm = false;        // a bit of the result of one matrix product
  bool flips_message = false;     // a bit of a message in a collective
};

}  // namespace sextant
