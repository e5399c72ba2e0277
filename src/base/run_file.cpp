#include "base/run_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/interruptions.h"

namespace sextant {

int open_run_file(const std::filesystem::path& path, int flags) {
  // Not blocking, for the case of a pipe that nobody reads; regular files do not care.
  int fd = ::open(path.c_str(), flags | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0666);
  struct stat about {};
  if (fd < 0 || (::fstat(fd, &about) == 0 && S_ISREG(about.st_mode))) return fd;
  ::close(fd);
  errno = EINVAL;
  return -1;
}

bool make_run_folder(const std::filesystem::path& path) {
  if (::mkdir(path.c_str(), 0777) == 0) return true;
  struct stat about {};
  if (errno != EEXIST || ::lstat(path.c_str(), &about) != 0) return false;
  if (S_ISDIR(about.st_mode)) return true;
  errno = ENOTDIR;
  return false;
}

bool write_all(int fd, std::string_view text) {
  Interruptions interruptions;
  while (!text.empty()) {
    ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && interruptions.may_try_again()) continue;
    if (n < 0) return false;
    interruptions.passed();
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

bool append_to_run_file(const std::filesystem::path& path, std::string_view text) {
  int fd = open_run_file(path, O_WRONLY | O_APPEND);
  if (fd < 0) return false;
  bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  int why = errno;
  ::close(fd);
  errno = why;
  return written;
}

}  // namespace sextant
