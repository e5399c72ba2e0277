// SEXTANT_FAULT: a rank falls ill on purpose, to test and to rehearse how a run ends. "throw:rank=1:step=3" throws
// before step 3 on rank 1; "stall" never goes on; "kill" and "stop" send the process SIGKILL and SIGSTOP;
// "corrupt" flips the lowest bit of one weight.
#pragma once

#include <cstdint>
#include <optional>

#include "exec/executor.h"

namespace sextant {

enum class FaultKind : uint8_t { none, throws, stalls, is_killed, is_stopped, corrupts };

struct Fault {
  FaultKind kind = FaultKind::none;
  int64_t rank = 0;
  int64_t step = 0;
};

Fault fault_from_environment();  // UserError when it cannot be read

// Does what the fault says when this is its rank and step.
void inject_fault(const Fault& fault, int64_t step, Bound& bound);

}  // namespace sextant
