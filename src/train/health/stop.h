// Signals that ask the run to end after the current step, with everything saved: Ctrl-C (SIGINT), SIGTERM, SIGHUP (a
// terminal that was closed) and SIGUSR1 (what schedulers and launchers send ahead of a time limit).
#pragma once

#include <signal.h>

#include <array>

namespace sextant {

// While it lives, those signals set a flag instead of killing the process. A second SIGINT or SIGTERM of the same kind
// ends it at once; SIGHUP and SIGUSR1 may come from several sides and are only requests, however often. A SIGHUP that
// was ignored when this was made stays ignored: nohup asks for that. One at a time.
class StopRequest {
 public:
  StopRequest();
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  bool asked() const;

 private:
  static constexpr std::array<int, 4> kSignals{SIGINT, SIGTERM, SIGHUP, SIGUSR1};
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace sextant
