// The rank and host by which an attempt failed.
#pragma once

#include <filesystem>
#include <string_view>

#include "supervise/run_report.h"

namespace sextant {

// From the heartbeats in `out` and what the attempt printed. Leaves the attempt as it is where nobody is known to be at
// fault.
void blame(Attempt& attempt, const std::filesystem::path& out, std::string_view printed);

}  // namespace sextant
