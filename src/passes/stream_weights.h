// Matrices of blocks that are kept on the host: each is copied to the device one block ahead of the block that reads
// it, in every forward and backward, and its bytes are given back behind the last op of the region that does. The
// update writes the host's (passes/offload.h), so that nothing goes up behind it.
//
// Weights stay on the device if they are outside of blocks (embedding, head), read by several blocks, not trained, a
// vector, or a small part of their block.
#pragma once

#include "ir/program.h"
#include "passes/overlap.h"

namespace sextant {

void stream_weights(Program& program, Lanes lanes);

}  // namespace sextant
