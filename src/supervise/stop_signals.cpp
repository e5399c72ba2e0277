#include "supervise/stop_signals.h"

#include <atomic>

namespace sextant {

namespace {

// The signal handler changes these: lock-free, since a handler may take no lock.
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
  handlers_.emplace(on_stop_signal, 0);  // without SA_RESTART: a signal ends a wait
}

bool StopSignals::stop_asked() const {
  return requests.load() > 0;
}

bool StopSignals::end_asked() const {
  return urgent_requests.load() > 1;
}

}  // namespace sextant
