// A hang in words: who waits for whom, in which collective and since when, back to the first rank that is late, and
// what that one is doing. From the heartbeats that ranks leave, and from /proc where the late one is on this host.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "events/run_event.h"
#include "train/health/heartbeat.h"

namespace sextant {

struct HangReport {
  int late_rank = -1;
  std::string late_host;
  std::vector<std::string> chain;  // one sentence for each rank that waits, the last for the late one

  std::string text() const;  // all of it, in one line
  RunEvent event() const;
  int64_t step = 0;
};

// Where a rank waits for another, or no longer answers. `now_ms` is the wall clock's; a beat much older than the newest
// one is of a rank that has stopped beating. Nothing where no rank is late.
std::optional<HangReport> hang_report(const std::vector<LastBeat>& beats, int64_t now_ms);

}  // namespace sextant
