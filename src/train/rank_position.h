// RankPosition: where one rank is, for itself and for those that look on: its status, its heartbeat, and the watch that
// ends the process when the rank hangs.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

#include "comm/rank_context.h"
#include "comm/rank_status.h"
#include "train/health/heartbeat.h"
#include "train/health/stall_watch.h"

namespace sextant {

// Made on the rank's own thread.
struct RankPosition {
  RankPosition(const std::filesystem::path& out, const RankContext& context, const TimeLimits& limits);

  RankStatus alone;  // when there is no transport to keep it
  RankStatus& rank_status;
  Heartbeat heartbeat;
  StallWatch watch;

 private:
  void end_stalled(int rank, const std::string& stood_still);

  std::filesystem::path out_;
  pid_t thread_;
};

}  // namespace sextant
