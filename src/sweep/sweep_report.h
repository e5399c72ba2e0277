// Report at the end of a sweep, as text and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sweep/sweep.h"

namespace sextant {

std::string sweep_text(const SweepResult& result);
nlohmann::ordered_json sweep_json(const SweepResult& result);

}  // namespace sextant
