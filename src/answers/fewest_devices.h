// How few devices train a run on so many tokens in so many days. Counts that are tried: the divisors of a node, then
// whole nodes. Round ones (1, 2, 3, 4, 6, 8, 12 … nodes) come first, from the fewest that could do at the full peak of
// the device; between the last that is too slow and the first that does, halves. So the answer meets the deadline and
// the next smaller count does not, by real plans of both.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "answers/planned_run.h"

namespace sextant {

struct DeadlineQuestion {
  const AskedRun& asked;
  const AskedPlace& place;
  double tokens = 0, days = 0;
  int64_t most_devices = 0;  // that are tried
};

enum class DeadlineOutcome : uint8_t { met, too_slow, does_not_fit, no_layout };

struct TriedCount {
  int64_t devices = 0;
  DeadlineOutcome outcome = DeadlineOutcome::met;
  std::optional<double> days;  // where a layout was priced
};

struct FewestDevices {
  double tokens = 0, days = 0;
  PlannedRun plan;
  std::vector<TriedCount> tried;        // fewest first
  std::optional<TriedCount> next_less;  // the count before the answer; none where there is no smaller one
  int64_t least = 1;                    // with fewer, no layout could do it at the device's peak
};

// UserError where even the most devices are too slow or nothing fits, with what came nearest.
FewestDevices fewest_devices(const DeadlineQuestion& question);

// Ascending, from 1 to the most.
std::vector<int64_t> device_counts(int64_t devices_per_node, int64_t most);

std::string fewest_text(const FewestDevices& answer);
nlohmann::ordered_json fewest_json(const FewestDevices& answer);

}  // namespace sextant
