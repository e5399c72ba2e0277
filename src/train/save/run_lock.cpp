#include "train/save/run_lock.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <thread>

#include "base/error.h"
#include "train/health/heartbeat.h"

namespace sextant {

namespace {

constexpr size_t kHolderBytes = 512;

std::string holder_in(int file) {
  std::string text(kHolderBytes, '\0');
  ssize_t n = ::pread(file, text.data(), text.size(), 0);
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  text.resize(std::min(text.size(), text.find('\n')));
  return text;
}

[[noreturn]] void refuse(const std::filesystem::path& out, std::string_view lock, int file) {
  std::string holder = holder_in(file);
  throw UserError(
      {.place = out.string(),
       .got = fmt::format("another {} here: {}", lock == RunLock::kRunFile ? "run is writing" : "supervisor is at work",
                          holder.empty() ? "another process" : holder),
       .expected = "a directory that no run is using",
       .hint = "wait for it, stop it, or choose another --out"});
}

}  // namespace

std::string RunLock::own_name() {
  return fmt::format("process {} on {}", ::getpid(), own_host_name());
}

RunLock::RunLock(const std::filesystem::path& out, std::string_view file, std::chrono::milliseconds patience)
    : path_(out / file) {
  constexpr std::chrono::milliseconds kGlance{10};
  file_ = Descriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file_.is_open()) throw_disk_error(path_, "cannot open", errno);
  auto start = std::chrono::steady_clock::now();
  while (!(held_ = ::flock(file_.get(), LOCK_EX | LOCK_NB) == 0)) {
    if (errno != EWOULDBLOCK) break;
    if (std::chrono::steady_clock::now() - start >= patience) refuse(out, file, file_.get());
    std::this_thread::sleep_for(kGlance);
  }
  std::string name = fmt::format("{}, since {:%Y-%m-%d %H:%M:%S} UTC\n", own_name(), fmt::gmtime(std::time(nullptr)));
  // For people, and for those whom the holder starts; the lock holds without it.
  if (::ftruncate(file_.get(), 0) == 0) [[maybe_unused]]
    ssize_t written = ::pwrite(file_.get(), name.data(), name.size(), 0);
}

void RunLock::require_free(const std::filesystem::path& out, std::string_view file) {
  Descriptor opened(::open((out / file).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  // Shared: those who look do not meet each other.
  if (opened.is_open() && ::flock(opened.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    refuse(out, file, opened.get());
}

std::string RunLock::last_holder(const std::filesystem::path& out, std::string_view file) {
  Descriptor opened(::open((out / file).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  return opened.is_open() ? holder_in(opened.get()) : "";
}

}  // namespace sextant
