// ChildProcess: what the supervisor starts, in a process group of its own, with its output appended to a file. When the
// supervisor dies, the child gets SIGUSR1: a run saves and stops, and mpirun and srun hand it on.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sextant {

class ChildProcess {
 public:
  // RunError when it cannot be started; a program that is not there exits with 127.
  ChildProcess(const std::vector<std::string>& words, int output);
  ~ChildProcess();  // kills what is left of it
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t id() const { return pid_; }
  // The status of waitpid once it has ended. A signal to the supervisor ends the wait early.
  std::optional<int> wait(std::chrono::milliseconds most);
  void send(int signal) const;
  void kill_all();  // it, and every process that it started

 private:
  pid_t pid_ = -1;
  int watched_ = -1;  // turns readable when it ends
  std::optional<int> status_;
};

// From now on, processes whose parent has ended become children of this one, so that none is out of reach.
void adopt_orphans();

// Every process below `root` that has not ended.
struct LivingProcess {
  pid_t id = 0;
  char state = '?';   // as /proc has it: T is stopped by a signal
  uint64_t used = 0;  // of the processor, in the kernel's ticks
};
std::vector<LivingProcess> living_descendants(pid_t root);

// Kills every process below `root`, and again until none is left.
void kill_descendants(pid_t root);

// When a process was started, in the kernel's ticks since boot; nothing where there is none. With the number it
// identifies a process.
std::optional<uint64_t> start_ticks(pid_t process);

}  // namespace sextant
