// What blocks save for backward, kept on the host meanwhile: copied there where it is made, and back one block ahead of
// the block whose backward reads it.
//
// The device gives its bytes back when the second block behind has begun: that op waits for the copy (join_lanes). What
// is made so late that no such op follows in the region is soon read again, and stays.
#pragma once

#include "passes/overlap.h"

namespace sextant {

void offload_activations(Program& program, Lanes lanes);

}  // namespace sextant
