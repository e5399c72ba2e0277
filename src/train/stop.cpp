#include "train/stop.h"

#include <signal.h>

namespace sextant {

namespace {

// The one thing a signal handler may touch.
volatile sig_atomic_t stop_asked = 0;

void on_signal(int signal) {
  stop_asked = 1;
  // The next one takes its usual effect: a run that hangs can still be ended.
  ::signal(signal, SIG_DFL);
}

}  // namespace

StopRequest::StopRequest() {
  stop_asked = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

StopRequest::~StopRequest() {
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGTERM, SIG_DFL);
}

bool StopRequest::asked() const { return stop_asked != 0; }

}  // namespace sextant
