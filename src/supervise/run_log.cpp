#include "supervise/run_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/printable.h"

namespace sextant {

RunLog::RunLog(const std::filesystem::path& out, Echo echo) : echo_(echo) {
  std::filesystem::path path = out / "run.log";
  file_ = Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file_.is_open()) throw_disk_error(path, "cannot open", errno);
  struct stat about {};
  if (::fstat(file_.get(), &about) == 0) echoed_ = about.st_size;
}

void RunLog::say(std::string_view line) {
  std::string text = fmt::format("== {}\n", printable(std::string(line), Newlines::kept));
  [[maybe_unused]] ssize_t written = ::write(file_.get(), text.data(), text.size());
  echo();
}

void RunLog::echo() {
  if (echo_ == Echo::none) return;
  char block[1 << 16];
  for (ssize_t n = 0; (n = ::pread(file_.get(), block, sizeof block, echoed_)) > 0; echoed_ += n)
    std::fwrite(block, 1, static_cast<size_t>(n), stdout);
  std::fflush(stdout);
}

}  // namespace sextant
