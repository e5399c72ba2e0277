// The program started in the background: tests send it signals and wait for how it ends.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "base/files.h"
#include "command.h"

namespace sextant {

// False when it does not come to be within a time that is generous on a busy machine.
inline bool comes_true(const std::function<bool()>& condition,
                       std::chrono::seconds patience = std::chrono::seconds(30)) {
  for (auto start = std::chrono::steady_clock::now(); std::chrono::steady_clock::now() - start < patience;) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

class StartedCommand {
 public:
  // `line` is for the shell; what it prints goes to `log`. It leads a process group of its own.
  StartedCommand(const std::string& line, std::string log) : log_(std::move(log)) {
    pid_ = ::fork();
    if (pid_ > 0) return;
    ::setpgid(0, 0);
    int file = ::open(log_.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0666);
    ::dup2(file, STDOUT_FILENO);
    ::dup2(file, STDERR_FILENO);
    ::execl("/bin/bash", "bash", "-c", line.c_str(), nullptr);
    ::_exit(127);
  }
  ~StartedCommand() {
    if (pid_ > 0) ::kill(-pid_, SIGKILL);
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  }
  StartedCommand(const StartedCommand&) = delete;
  StartedCommand& operator=(const StartedCommand&) = delete;

  pid_t pid() const { return pid_; }
  void send(int signal) const { ::kill(pid_, signal); }
  std::string output() const { return read_file(log_); }

  // Its exit code, 128 + signal when it was killed; -1 when it does not end.
  int wait(std::chrono::seconds patience = std::chrono::seconds(30)) {
    int status = 0;
    if (!comes_true([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; }, patience)) return -1;
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  std::string log_;
  pid_t pid_ = -1;
};

inline size_t lines_in(const std::string& file) {
  if (!std::filesystem::exists(file)) return 0;
  std::string text = read_file(file);
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace sextant
