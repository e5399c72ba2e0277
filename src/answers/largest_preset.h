// The largest published model that can be trained on so many devices of a machine, and its fastest layout. Presets are
// tried from the largest down, so that whatever is larger than the answer was tried and refused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "answers/planned_run.h"

namespace sextant {

struct RefusedPreset {
  std::string preset;
  int64_t parameters = 0;
  std::string why;
};

struct LargestPreset {
  PlannedRun plan;
  std::vector<RefusedPreset> refused;  // all that are larger, the largest first
};

struct LargestQuestion {
  const AskedPlace& place;
  int64_t devices = 1;
  std::vector<std::string> overrides;  // of every preset's run
  double tokens = 0;                   // 0: nothing is said of the whole run
};

// DoesNotFit when none fits.
LargestPreset largest_preset(const LargestQuestion& question);

std::string largest_text(const LargestPreset& answer);
nlohmann::ordered_json largest_json(const LargestPreset& answer);

}  // namespace sextant
