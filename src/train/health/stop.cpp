#include "train/health/stop.h"

#include <atomic>

namespace sextant {

namespace {

// The one thing the handler touches. Any thread of the process may be the one it runs on, hence atomic; and lock-free,
// since a handler may take no lock.
std::atomic<bool> stop_asked{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void on_signal(int signal) {
  stop_asked.store(true);
  // The next one takes its usual effect: a run that hangs can still be ended.
  if (signal == SIGINT || signal == SIGTERM) ::signal(signal, SIG_DFL);
}

}  // namespace

StopRequest::StopRequest() {
  stop_asked.store(false);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &before_[i]);
    if (kSignals[i] == SIGHUP && before_[i].sa_handler == SIG_IGN) continue;
    ::sigaction(kSignals[i], &action, nullptr);
  }
}

StopRequest::~StopRequest() {
  for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
}

bool StopRequest::asked() const {
  return stop_asked.load();
}

}  // namespace sextant
