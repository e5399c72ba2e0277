// StopSignals: what the supervisor is asked by signals. SIGINT, SIGTERM, SIGHUP and SIGUSR1 ask it to end the run with
// everything saved; a second SIGINT or SIGTERM asks for the end at once.
#pragma once

#include <signal.h>

#include <array>

namespace sextant {

// One at a time. A SIGHUP that was ignored when this was made stays ignored.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  bool stop_asked() const;
  bool end_asked() const;

 private:
  static constexpr std::array<int, 4> kSignals{SIGINT, SIGTERM, SIGHUP, SIGUSR1};
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace sextant
