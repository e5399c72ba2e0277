// join_lanes: writes down which ops wait for which ops of the comm lane. An op of the compute lane waits for whatever
// makes a value that it reads there; the update waits for all of them. Runs after overlap, which puts ops on lanes.
#pragma once

#include "ir/program.h"

namespace sextant {

void join_lanes(Program& program);

}  // namespace sextant
