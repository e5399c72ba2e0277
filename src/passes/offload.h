// offload: what the run keeps on the host (Offload of ir/plan.h) gets there and back by copies between the spaces, and
// the update of what is kept there runs on host cores.
//
// The update. An op of it that has an operand on the host becomes an op of the host: each of its operands on the device
// is copied down, and what it changes of them is copied back. A gradient goes down as soon as it is finished, in the
// backward of the last microbatch; a weight while the last microbatch's forward runs, which does not change it.
//
// State in a file. A step's state is read into memory of the host while the step before runs, and written back behind
// it; gradients and weights go down with it. The host then holds the operands of four steps at most: one whose state is
// read, one that runs, and two whose state is written, until a later step waits for the lane.
//
// Working weights: stream_weights.h. The update changes them where they are; a message of it (ZeRO) and what measures
// it stay on the device, and copy what they read up and what they write down. Gradients then go down a few steps ahead
// of their own, and not in backward: the host has no room for all of them beside the weights.
//
// Saved activations: offload_activations.h.
//
// These copies go on the comm lane; with lanes = off the rank waits for each. The values that are computed are the same
// bit for bit.
#pragma once

#include "ir/plan.h"
#include "ir/program.h"
#include "passes/overlap.h"

namespace sextant {

struct OffloadPlan {
  Offload offload;
  Lanes lanes = Lanes::on;
};

void offload(Program& program, const OffloadPlan& plan);

}  // namespace sextant
