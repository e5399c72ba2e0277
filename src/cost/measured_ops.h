// Ops timed on the machine itself, which is how a CPU is priced: caches and threads decide there, and no model of a few
// figures predicts them. Enters: an op's name and work. Leaves: its seconds, from the measured ops of that name that
// are nearest in size, scaled by what the work asks for at the least; nothing when none of that name was measured.
#pragma once

#include <optional>
#include <string_view>

#include "cost/machine.h"
#include "ir/cost.h"
#include "ir/message.h"

namespace sextant {

// The sizes that decide an op's time: of attention [batch × heads, queries, keys, head size], of GEMMs [rows, columns,
// depth] of the first, of all others [bytes].
std::vector<double> size_of_op(const Cost& cost);

std::optional<double> measured_seconds(const Machine& machine, std::string_view op, const Cost& cost);

// Messages stand among the ops under these names, with [ranks, bytes]. One of a kind that was not measured takes what
// the innermost links do.
double message_seconds(const Machine& machine, Collective kind, double ranks, double bytes);

}  // namespace sextant
