// Stacks as a file: machines/stacks.toml, one table per stack. Leaves: all of them, or one UserError with everything
// that is wrong, each at its line; and which of them a published run was made with.
#pragma once

#include <string_view>
#include <vector>

#include "cost/stack.h"

namespace sextant {

// From $SEXTANT_MACHINES, else the ones that come with the program.
std::vector<Stack> load_stacks();

std::vector<Stack> parse_stacks(std::string_view text, std::string_view place);

// The stack with the longest entry of `matches` that fits; null when none does. An entry "S" fits sources that begin
// with S; "S :: T :: U" those that have T and U in what else is said of the run.
const Stack* stack_for_source(const std::vector<Stack>& stacks, std::string_view source, std::string_view said = "");

// By name; a UserError lists what there is.
const Stack& stack_named(const std::vector<Stack>& stacks, std::string_view name);

}  // namespace sextant
