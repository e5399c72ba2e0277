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
  handlers_.emplace(on_signal, SA_RESTART);
}

bool StopRequest::asked() const {
  return stop_asked.load();
}

}  // namespace sextant
