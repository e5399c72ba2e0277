// The network of published runs: a machine's file has its own, and the source of a stack may tell of another.
#pragma once

#include "cost/machine.h"
#include "cost/stack.h"

namespace sextant {

Machine with_network_of(const Stack& stack, Machine machine);

}  // namespace sextant
