// overlap: lets messages travel while ranks compute. It changes no value, only when and where messages are sent:
//   a gradient's reduction goes from the update to the place where the gradient is finished, in the backward of the
//   last microbatch, several of them in one bucket; weights that are gathered (ZeRO-3) are asked for one block ahead;
//   gradients that are scattered within a microbatch (ZeRO 2, 3) are added up one block later; where the schedule pairs
//   a forward with a backward, messages of their layers travel while the other of the two computes (ir/walk.h).
// These ops get the comm lane (ir/lane.h). With lanes = off the messages are the same, in the same buckets, and the
// rank waits for each.
#pragma once

#include "base/units.h"
#include "ir/program.h"

namespace sextant {

enum class Lanes : uint8_t { off, on };

struct Overlap {
  Bytes bucket{8 << 20};  // of gradients in one reduction
  Lanes lanes = Lanes::on;
};

void overlap(Program& program, const Overlap& options);

}  // namespace sextant
