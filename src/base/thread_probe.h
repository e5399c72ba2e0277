// State of a thread of this host, read from /proc: for a rank that no longer answers.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace sextant {

struct ThreadProbe {
  char state = '?';         // as in /proc: R, S, D, T, t, Z
  std::string system_call;  // "futex"; empty: none, or it may not be read
  std::string kernel_wait;  // the function of the kernel that it waits in; empty: none, or it may not be read
  int64_t swapped_kb = 0;   // of the process

  bool is_stopped() const { return state == 'T' || state == 't'; }
  bool has_ended() const { return state == 'Z' || state == 'X'; }
  // "is stopped by a signal", "sleeps in the system call futex (kernel: futex_wait_queue)", …
  std::string text() const;
};

// Nothing where there is no such thread. `thread` 0: the process's first one.
std::optional<ThreadProbe> probe_thread(pid_t process, pid_t thread);

}  // namespace sextant
