#include "base/exit_within.h"

#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <thread>

namespace sextant {

void exit_within(std::chrono::milliseconds time, ExitCode code) {
  try {
    std::thread([time, code] {
      std::this_thread::sleep_for(time);
      ::_exit(number_of(code));
    }).detach();
  } catch (const std::system_error&) {
    // No thread can be had: SIGALRM ends the process, with the code of a signal.
    ::alarm(static_cast<unsigned>(std::max<int64_t>(1, time.count() / 1000)));
  }
}

}  // namespace sextant
