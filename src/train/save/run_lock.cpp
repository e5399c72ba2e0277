#include "train/save/run_lock.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "base/error.h"
#include "train/health/heartbeat.h"

namespace sextant {

namespace {

constexpr size_t kHolderBytes = 512;

std::string own_name() {
  return fmt::format("process {} on {}, since {:%Y-%m-%d %H:%M:%S} UTC", ::getpid(), own_host_name(),
                     fmt::gmtime(std::time(nullptr)));
}

std::string holder_in(int file) {
  std::string text(kHolderBytes, '\0');
  ssize_t n = ::pread(file, text.data(), text.size(), 0);
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  text.resize(std::min(text.size(), text.find('\n')));
  return text.empty() ? "another process" : text;
}

}  // namespace

RunLock::RunLock(const std::filesystem::path& out, std::string_view file) {
  std::filesystem::path path = out / file;
  file_ = Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file_.is_open()) throw_disk_error(path, "cannot open", errno);
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return;
    throw UserError(
        {.place = out.string(),
         .got = fmt::format("another {} here: {}", file == kRunFile ? "run is writing" : "supervisor is at work",
                            holder_in(file_.get())),
         .expected = "a directory that no run is using",
         .hint = "wait for it, stop it, or choose another --out"});
  }
  held_ = true;
  std::string name = own_name() + "\n";
  // The holder's name is for people; the lock holds without it.
  if (::ftruncate(file_.get(), 0) == 0) [[maybe_unused]]
    ssize_t written = ::pwrite(file_.get(), name.data(), name.size(), 0);
}

}  // namespace sextant
