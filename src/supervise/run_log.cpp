#include "supervise/run_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/printable.h"

namespace sextant {

RunLog::RunLog(const std::filesystem::path& out, Echo echo) : path_(out / "run.log"), echo_(echo) {
  file_ = Descriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file_.is_open()) throw_disk_error(path_, "cannot open", errno);
  echoed_ = size();
}

int64_t RunLog::size() const {
  struct stat about {};
  return ::fstat(file_.get(), &about) == 0 ? about.st_size : 0;
}

std::string RunLog::text_from(int64_t offset) const {
  constexpr int64_t kMostBytes = 1 << 20;
  int64_t end = size(), at = std::max(offset, end - kMostBytes);
  std::string text(static_cast<size_t>(std::max<int64_t>(0, end - at)), '\0');
  size_t have = 0;
  for (ssize_t n = 1; have < text.size() && n > 0; have += static_cast<size_t>(std::max<ssize_t>(n, 0)))
    n = ::pread(file_.get(), text.data() + have, text.size() - have, at + static_cast<int64_t>(have));
  text.resize(have);
  return text;
}

void RunLog::say(std::string_view line) {
  std::string text = fmt::format("== {}\n", printable(std::string(line), Newlines::kept));
  bool is_kept = ::write(file_.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  echo();
  if (is_kept || echo_ == Echo::none) return;
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void RunLog::echo() {
  if (echo_ == Echo::none) return;
  char block[1 << 16];
  for (ssize_t n = 0; (n = ::pread(file_.get(), block, sizeof block, echoed_)) > 0; echoed_ += n)
    std::fwrite(block, 1, static_cast<size_t>(n), stdout);
  std::fflush(stdout);
}

}  // namespace sextant
