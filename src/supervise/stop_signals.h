// StopSignals: what the supervisor is asked by signals: to end the run with everything saved, and by a second SIGINT or
// SIGTERM, to end it at once.
#pragma once

#include <optional>

#include "train/health/stop_handlers.h"

namespace sextant {

// One at a time.
class StopSignals {
 public:
  StopSignals();

  bool stop_asked() const;
  bool end_asked() const;

 private:
  std::optional<StopHandlers> handlers_;
};

}  // namespace sextant
