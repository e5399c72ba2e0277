// The time of GEMMs on a device: tiles dealt to its units in waves, what odd sizes cost, and the bytes that
// must move; corrected by GEMMs that were measured there, where the machine has a table of them.
#pragma once

#include "cost/machine.h"
#include "ir/cost.h"

namespace sextant {

struct GemmQuery {
  Gemm gemm;
  double operand_bytes = 2;  // per element of the operands and of the result
  std::string dtype = "bf16";
};

double gemm_seconds(const Machine& machine, const Efficiencies& efficiency, const GemmQuery& query);

// GEMMs of experts in one kernel of ours: corrected by grouped ones that were measured in this pass and type, where the
// machine has any; else by the single ones, as gemm_seconds is.
double grouped_gemm_seconds(const Machine& machine, const Efficiencies& efficiency, const GemmQuery& query,
                            GroupedPass pass);

// How much of the rate is left when a size is no multiple of what the units load at once.
double alignment_rate(double size);

}  // namespace sextant
