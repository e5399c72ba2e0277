// Machines as files. Enters: a machine's name or the path of its TOML file (docs/machines.md tells its form). Leaves:
// the Machine, or one UserError with everything that is wrong, each at its line. A cluster's file may start from a
// device's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cost/machine.h"

namespace sextant {

// A path (it ends in .toml), or a name looked up in $SEXTANT_MACHINES, in ~/.config/sextant/machines and then in the
// machines that come with the program. "here" is this host, once `bench machine --save here` has measured it.
Machine load_machine(std::string_view name_or_path);

// `place` names the text in errors; a device it starts from is looked up by name.
Machine parse_machine(std::string_view text, std::string_view place);

// Sorted.
std::vector<std::string> known_machines();

// The whole machine as a file of its own.
std::string machine_text(const Machine& machine);

// Where `bench machine --save here` writes: HOST.toml in the first of the folders that are the user's own.
inline constexpr std::string_view kThisMachine = "here";
std::string file_of_this_machine();

// The path of NAME.toml among the machines, which the profiles lie beside; empty when there is none.
std::string find_machine_file(std::string_view name);

}  // namespace sextant
