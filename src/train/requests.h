// Requests: what is asked of a run from outside while it trains, by signals and by files in its directory, the same on
// every rank after the same step.
#pragma once

#include <filesystem>

#include "comm/host_group.h"
#include "train/health/stop.h"
#include "train/health/switches.h"

namespace sextant {

class Requests {
 public:
  Requests(const std::filesystem::path& out, const StopRequest& stop, HostGroup& group)
      : switches_(out), stop_(stop), group_(group) {}

  // Called by all ranks together. A signal may reach one process before another, and the leader alone looks at the
  // files.
  Switches::Asked look();

 private:
  Switches switches_;
  const StopRequest& stop_;
  HostGroup& group_;
};

}  // namespace sextant
