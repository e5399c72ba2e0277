// StopRequest: whether a signal has asked the run to end after the current step, with everything saved.
#pragma once

#include <optional>

#include "train/health/stop_handlers.h"

namespace sextant {

// While it lives, those signals set a flag instead of killing the process. A second SIGINT or SIGTERM of the same kind
// ends it at once; SIGHUP and SIGUSR1 may come from several sides and are only requests, however often. One at a time.
class StopRequest {
 public:
  StopRequest();

  bool asked() const;

 private:
  std::optional<StopHandlers> handlers_;
};

}  // namespace sextant
