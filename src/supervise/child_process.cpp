#include "supervise/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "base/error.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

struct ProcessLine {
  pid_t parent = 0;
  char state = '?';
  uint64_t used = 0, start = 0;
};

// /proc/PID/stat: the name stands in parentheses and may hold anything; the fields behind it are numbered from 3.
std::optional<ProcessLine> process_line(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text;
  if (!std::getline(file, text)) return std::nullopt;
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  ProcessLine line;
  fields >> line.state >> line.parent;
  std::string skipped;
  uint64_t user = 0, system = 0;
  for (int field = 5; field < 14; ++field) fields >> skipped;
  fields >> user >> system;
  line.used = user + system;
  for (int field = 16; field < 22; ++field) fields >> skipped;
  fields >> line.start;
  return fields ? std::optional(line) : std::nullopt;
}

std::map<pid_t, ProcessLine> all_processes() {
  std::map<pid_t, ProcessLine> found;
  std::error_code error;
  for (fs::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    pid_t process = 0;
    auto [last, bad] = std::from_chars(name.data(), name.data() + name.size(), process);
    if (bad != std::errc() || last != name.data() + name.size()) continue;
    if (std::optional<ProcessLine> line = process_line(process)) found.emplace(process, *line);
  }
  return found;
}

}  // namespace

std::vector<LivingProcess> living_descendants(pid_t root) {
  std::map<pid_t, ProcessLine> all = all_processes();
  std::vector<LivingProcess> found;
  for (const auto& [process, line] : all) {
    if (line.state == 'Z' || process == root) continue;
    for (auto at = all.find(line.parent); at != all.end(); at = all.find(at->second.parent)) {
      if (at->first != root) continue;
      found.push_back({process, line.state, line.used});
      break;
    }
  }
  return found;
}

namespace {

// In the new process: nothing but calls that are safe between fork and exec.
[[noreturn]] void become(char* const* words, int output, pid_t supervisor) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGUSR1);
  if (::getppid() != supervisor) ::_exit(127);  // it died before this took effect
  int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::execvp(words[0], words);
  ::_exit(127);
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& words, int output) {
  std::vector<std::string> held = words;
  std::vector<char*> pointers;
  for (std::string& word : held) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_t self = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw RunError(words[0], fmt::format("cannot be started: {}", ::strerror(errno)));
  if (pid_ == 0) become(pointers.data(), output, self);
  ::setpgid(pid_, pid_);  // whichever of the two comes first
  watched_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
}

ChildProcess::~ChildProcess() {
  if (!status_) kill_all();
  if (watched_ >= 0) ::close(watched_);
}

std::optional<int> ChildProcess::wait(std::chrono::milliseconds most) {
  if (status_) return status_;
  constexpr std::chrono::milliseconds kWithoutWatch{20};
  pollfd file{.fd = watched_, .events = POLLIN, .revents = 0};
  if (watched_ >= 0)
    ::poll(&file, 1, static_cast<int>(most.count()));
  else
    std::this_thread::sleep_for(std::min(most, kWithoutWatch));
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
  return status_;
}

void ChildProcess::send(int signal) const {
  if (!status_) ::kill(pid_, signal);
}

void ChildProcess::kill_all() {
  kill_descendants(::getpid());
  int status = 0;
  if (!status_ && ::waitpid(pid_, &status, 0) == pid_) status_ = status;
  while (::waitpid(-1, nullptr, WNOHANG) > 0) continue;  // orphans that were adopted
}

void adopt_orphans() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void kill_descendants(pid_t root) {
  constexpr int kMostRounds = 1000;
  for (int round = 0; round < kMostRounds; ++round) {
    std::vector<LivingProcess> alive = living_descendants(root);
    if (alive.empty()) return;
    for (const LivingProcess& process : alive) ::kill(process.id, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  throw RunError("", fmt::format("processes below {} do not end", root),
                 "look for processes in state D (a disk that hangs)");
}

std::optional<uint64_t> start_ticks(pid_t process) {
  std::optional<ProcessLine> line = process_line(process);
  if (!line || line->state == 'Z') return std::nullopt;
  return line->start;
}

}  // namespace sextant
