#include "base/thread_probe.h"

#include <fmt/format.h>
#include <sys/syscall.h>

#include <charconv>
#include <fstream>
#include <iterator>

namespace sextant {

namespace {

// Those that a rank waits in; others are given by number.
struct NamedCall {
  long number;
  const char* name;
};
constexpr NamedCall kCalls[] = {{SYS_futex, "futex"},
                                {SYS_read, "read"},
                                {SYS_write, "write"},
                                {SYS_pread64, "pread"},
                                {SYS_pwrite64, "pwrite"},
                                {SYS_readv, "readv"},
                                {SYS_writev, "writev"},
                                {SYS_fsync, "fsync"},
                                {SYS_fdatasync, "fdatasync"},
                                {SYS_ppoll, "ppoll"},
                                {SYS_epoll_pwait, "epoll_pwait"},
#ifdef SYS_poll
                                {SYS_poll, "poll"},
                                {SYS_epoll_wait, "epoll_wait"},
#endif
                                {SYS_recvmsg, "recvmsg"},
                                {SYS_recvfrom, "recvfrom"},
                                {SYS_sendmsg, "sendmsg"},
                                {SYS_sendto, "sendto"},
                                {SYS_connect, "connect"},
                                {SYS_nanosleep, "nanosleep"},
                                {SYS_clock_nanosleep, "clock_nanosleep"},
                                {SYS_restart_syscall, "restart_syscall"},
                                {SYS_sched_yield, "sched_yield"},
                                {SYS_openat, "openat"},
                                {SYS_close, "close"},
                                {SYS_ioctl, "ioctl"},
                                {SYS_mmap, "mmap"},
                                {SYS_munmap, "munmap"},
                                {SYS_madvise, "madvise"},
                                {SYS_flock, "flock"},
                                {SYS_fallocate, "fallocate"},
                                {SYS_ftruncate, "ftruncate"},
                                {SYS_unlinkat, "unlinkat"},
                                {SYS_wait4, "wait4"}};

std::string proc_text(const std::string& path) {
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  return text.substr(0, text.find('\0'));
}

// "202 0x7f… …", "running", or "-1 …" outside of one.
std::string call_in(const std::string& text) {
  long number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  if (number < 0) return "";
  if (number == 0 && !text.starts_with('0')) return "";
  for (const NamedCall& call : kCalls)
    if (call.number == number) return call.name;
  return fmt::format("number {}", number);
}

std::string word_in(const std::string& text) {
  std::string word = text.substr(0, text.find_first_of(" \n"));
  return word == "0" || word == "-1" ? "" : word;
}

int64_t kb_of(const std::string& status, std::string_view key) {
  size_t at = status.find(key);
  if (at == status.npos) return 0;
  at = status.find_first_of("0123456789", at);
  int64_t kb = 0;
  if (at != status.npos) std::from_chars(status.data() + at, status.data() + status.size(), kb);
  return kb;
}

}  // namespace

std::string ThreadProbe::text() const {
  std::string in = system_call.empty() ? "" : fmt::format(" in the system call {}", system_call);
  std::string kernel = kernel_wait.empty() ? "" : fmt::format(" (kernel: {})", kernel_wait);
  std::string swap = swapped_kb > 0 ? fmt::format(", with {} MB of it in swap", (swapped_kb + 1023) / 1024) : "";
  switch (state) {
    case 'R':
      return "computes, or waits for a core" + in + swap;
    case 'S':
      return "sleeps" + in + kernel + swap;
    case 'D':
      return "waits for a device or a file system" + in + kernel + swap;
    case 'T':
      return "is stopped by a signal (SIGSTOP)" + swap;
    case 't':
      return "is held by a debugger" + swap;
    case 'Z':
    case 'X':
      return "has ended";
    default:
      return fmt::format("is in the state {}", state) + in + kernel + swap;
  }
}

std::optional<ThreadProbe> probe_thread(pid_t process, pid_t thread) {
  if (process <= 0) return std::nullopt;
  std::string place = fmt::format("/proc/{}/task/{}/", process, thread > 0 ? thread : process);
  std::string stat = proc_text(place + "stat");
  size_t name_end = stat.rfind(')');
  if (name_end == stat.npos || name_end + 2 >= stat.size()) return std::nullopt;
  return ThreadProbe{.state = stat[name_end + 2],
                     .system_call = call_in(proc_text(place + "syscall")),
                     .kernel_wait = word_in(proc_text(place + "wchan")),
                     .swapped_kb = kb_of(proc_text(fmt::format("/proc/{}/status", process)), "VmSwap:")};
}

}  // namespace sextant
