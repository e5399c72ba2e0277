// StopHandlers: a handler for the signals that ask a run to end with everything saved: Ctrl-C (SIGINT), SIGTERM, SIGHUP
// (a terminal that was closed) and SIGUSR1 (what schedulers and launchers send ahead of a time limit). A SIGHUP that
// was ignored when this was made stays ignored: nohup asks for that.
#pragma once

#include <signal.h>

#include <array>
#include <cstddef>

namespace sextant {

class StopHandlers {
 public:
  // `flags`: of sigaction.
  StopHandlers(void (*handler)(int), int flags) {
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = flags;
    for (size_t i = 0; i < kSignals.size(); ++i) {
      ::sigaction(kSignals[i], nullptr, &before_[i]);
      if (kSignals[i] == SIGHUP && before_[i].sa_handler == SIG_IGN) continue;
      ::sigaction(kSignals[i], &action, nullptr);
    }
  }
  ~StopHandlers() {
    for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
  }
  StopHandlers(const StopHandlers&) = delete;
  StopHandlers& operator=(const StopHandlers&) = delete;

 private:
  static constexpr std::array<int, 4> kSignals{SIGINT, SIGTERM, SIGHUP, SIGUSR1};
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace sextant
