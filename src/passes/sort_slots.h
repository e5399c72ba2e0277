// sort_slots: lets values of slots stand in the order of their experts (ops/slot_order.cpp) where every op that makes
// or reads them can have them so, which its definition says by the operand `order?`: those of its values with dim n are
// of slots. Kernels of GPUs then read the rows of an expert as blocks instead of gathering them. One of the fusions of
// passes/fuse.h, as it runs on a rank's own slots.
#pragma once

#include "ir/program.h"

namespace sextant {

void sort_slots(Program& program);

}  // namespace sextant
