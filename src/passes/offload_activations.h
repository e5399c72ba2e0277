// Keeps on the host the activations that blocks save for backward: each is copied to the host where it is made, and
// back one block ahead of the block whose backward reads it.
//
// The device frees the bytes when the second block after it has begun: that op waits for the copy (join_lanes). An
// activation that is made so late that no such op follows in the region is soon read again, and stays on the device.
#pragma once

#include "passes/overlap.h"

namespace sextant {

void offload_activations(Program& program, Lanes lanes);

}  // namespace sextant
