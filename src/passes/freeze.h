// freeze: the last pass. Values that no op touches are dropped and the rest renumbered, so that the text of a Program,
// and its hash, say exactly what will run. Nothing changes a Program after this.
#pragma once

#include "ir/program.h"

namespace sextant {

void freeze(Program& program);

}  // namespace sextant
