// The attr `transfer` of a redistribute op: the one place that reads and writes its text.
#pragma once

#include <optional>

#include "ir/attrs.h"
#include "mesh/redistribution.h"

namespace sextant {

// nullopt where the attrs have none: another op, or a redistribute op whose layouts infer has not decided yet.
std::optional<Transfer> transfer_of(const Attrs& attrs);

void set_transfer(Attrs& attrs, Transfer transfer);

}  // namespace sextant
