#include "supervise/stop_signals.h"

#include <atomic>

namespace sextant {

namespace {

// What the handler touches: lock-free, since a handler may take no lock.
std::atomic<int> requests{0}, urgent_requests{0};
static_assert(std::atomic<int>::is_always_lock_free);

void on_stop_signal(int signal) {
  requests.fetch_add(1);
  if (signal == SIGINT || signal == SIGTERM) urgent_requests.fetch_add(1);
}

}  // namespace

StopSignals::StopSignals() {
  requests.store(0);
  urgent_requests.store(0);
  struct sigaction action {};
  action.sa_handler = on_stop_signal;  // without SA_RESTART: it ends a wait
  for (size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &before_[i]);
    if (kSignals[i] == SIGHUP && before_[i].sa_handler == SIG_IGN) continue;
    ::sigaction(kSignals[i], &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
}

bool StopSignals::stop_asked() const {
  return requests.load() > 0;
}

bool StopSignals::end_asked() const {
  return urgent_requests.load() > 1;
}

}  // namespace sextant
