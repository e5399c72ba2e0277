#include "events/event_hook.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/run_file.h"
#include "base/threads.h"
#include "events/run_event.h"

extern char** environ;

namespace sextant {

namespace {

constexpr std::chrono::milliseconds kPoll{10};

// A pipe whose ends are closed when it goes.
class Pipe {
 public:
  Pipe() { open_ = ::pipe2(ends_, O_CLOEXEC) == 0; }
  ~Pipe() {
    for (int end : ends_)
      if (end >= 0) ::close(end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  bool is_open() const { return open_; }
  int reader() const { return ends_[0]; }
  int writer() const { return ends_[1]; }
  void close_writer() {
    ::close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  int ends_[2] = {-1, -1};
  bool open_ = false;
};

// posix_spawn, and not fork: the process has many threads.
int start_shell(const std::string& command, int input, const std::filesystem::path& log, pid_t& process) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW,
                                     0666);
  ::posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  sigset_t defaults, none;
  ::sigemptyset(&none);
  ::sigemptyset(&defaults);
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGPIPE}) ::sigaddset(&defaults, signal);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  std::string shell = "sh", option = "-c", text = command;
  char* words[] = {shell.data(), option.data(), text.data(), nullptr};
  int error = ::posix_spawn(&process, "/bin/sh", &files, &attributes, words, environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  return error;
}

}  // namespace

EventHook::EventHook(std::string command, std::filesystem::path log, const Limits& limits)
    : command_(std::move(command)), log_(std::move(log)), limits_(limits) {
  if (!command_.empty()) worker_ = start_thread("the hook of events", [this] { work(); });
}

EventHook::~EventHook() {
  if (!worker_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
    end_at_ = std::chrono::steady_clock::now() + limits_.each;
  }
  changed_.notify_one();
  worker_.join();
}

void EventHook::post(std::string line) {
  if (command_.empty()) return;
  {
    std::lock_guard lock(mutex_);
    if (queue_.size() >= limits_.waiting) return note("an event was left out: the command is slower than events come");
    queue_.push_back(std::move(line));
  }
  changed_.notify_one();
}

void EventHook::note(const std::string& line) const {
  append_to_run_file(log_, fmt::format("{} log.on_event: {}\n", utc_now(), line));
}

void EventHook::work() {
  while (true) {
    std::string line;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return ending_ || !queue_.empty(); });
      if (queue_.empty() || (ending_ && std::chrono::steady_clock::now() >= end_at_)) {
        if (!queue_.empty()) note(fmt::format("{} events were left out when the run ended", queue_.size()));
        return;
      }
      line = std::move(queue_.front());
      queue_.pop_front();
    }
    run(line);
  }
}

void EventHook::run(const std::string& line) const {
  Pipe pipe;
  if (!pipe.is_open()) return note(fmt::format("no pipe: {}", ::strerror(errno)));
  // A line is shorter than what a pipe holds, or the rest is lost: nothing here waits for the command to read.
  ::fcntl(pipe.writer(), F_SETFL, O_NONBLOCK);
  std::string text = line + "\n";
  if (::write(pipe.writer(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    note("an event is longer than a pipe holds, and was cut");
  pipe.close_writer();
  pid_t process = -1;
  if (int error = start_shell(command_, pipe.reader(), log_, process); error != 0)
    return note(fmt::format("cannot be started: {}", ::strerror(error)));
  auto limit = std::chrono::steady_clock::now() + limits_.each;
  int status = 0;
  while (::waitpid(process, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() < limit) {
      std::this_thread::sleep_for(kPoll);
      continue;
    }
    ::kill(-process, SIGKILL);
    ::waitpid(process, &status, 0);
    return note(fmt::format("killed after {} s", std::chrono::duration<double>(limits_.each).count()));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0) note(fmt::format("ended with exit code {}", WEXITSTATUS(status)));
  if (WIFSIGNALED(status)) note(fmt::format("ended by signal {}", WTERMSIG(status)));
}

}  // namespace sextant
