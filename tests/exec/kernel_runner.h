// Runs one CPU kernel on buffers of its own. Enters: op, attrs and inputs as doubles. Leaves: outputs as doubles.
// Outputs and workspace are filled with NaN before the run, so that reading what was never written shows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "exec/cpu/kernel.h"

namespace sextant {

using Numbers = std::vector<double>;

struct KernelRun {
  const OpDef& def;
  Attrs attrs;
  TensorTypes types;  // of the inputs
  std::vector<Numbers> inputs;
  DType real = DType::f64;  // what floating-point operands become
  int threads = 1;
  int over_input = -1;                     // write over this input too, which the definition says may be done
  Numbers first_output = {};               // what output 0 holds before the run (for accumulate=1)
  std::optional<Attrs> kernel_attrs = {};  // what the kernel sees instead of `attrs` (a rank with part of the heads)
};

std::vector<Numbers> run_kernel(const KernelRun& run);

// Inputs for an example: reals are normal, squares and second moments are made positive, integers below the limit.
std::vector<Numbers> draw_inputs(const OpDef& def, const Example& example, uint64_t seed = 1);

// |a − b| / |b| as vectors; 0 when both are zero.
double relative_error(const Numbers& a, const Numbers& b);

}  // namespace sextant
