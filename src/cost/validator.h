// Do a machine's figures hang together? Enters: a Machine. Leaves: what cannot be, in sentences; nothing when all is
// well. A machine with problems can still be planned for: it is for the one who describes it to judge.
#pragma once

#include <string>
#include <vector>

#include "cost/machine.h"

namespace sextant {

std::vector<std::string> problems_of(const Machine& machine);

}  // namespace sextant
