#include "ckpt/disk.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/interruptions.h"

namespace sextant {

namespace {

std::string_view hint_for(int error) {
  switch (error) {
    case ENOSPC:
      return "the disk is full: free some space; what was saved before is untouched";
    case EDQUOT:
      return "your disk quota is spent: free some space; what was saved before is untouched";
    case EFBIG:
      return "the file is larger than ulimit -f or the file system allows; use smaller shards";
    case EACCES:
    case EPERM:
      return "check that you may write there; what was saved before is untouched";
    case EROFS:
      return "the file system is mounted read-only; choose another place";
    default:
      return "what was saved before is untouched";
  }
}

void reserve(const std::filesystem::path& path, int fd, int64_t size) {
  Interruptions interruptions;
  while (::fallocate(fd, 0, 0, size) != 0) {
    if (interruptions.may_try_again()) continue;
    // Then a full disk shows while writing. A large reservation is interrupted as a whole, and begun anew.
    if (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINTR) return;
    throw_disk_error(path, fmt::format("cannot reserve {} bytes", size), errno);
  }
}

}  // namespace

void throw_disk_error(const std::filesystem::path& path, std::string_view doing, int error) {
  throw RunError(path.string(), fmt::format("{}: {}", doing, std::strerror(error)), hint_for(error));
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

OutputFile::OutputFile(std::filesystem::path path, int64_t size, Creation creation)
    : path_(std::move(path)),
      file_(::open(path_.c_str(),
                   O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | (creation == Creation::fresh ? O_TRUNC : 0), 0666)) {
  if (!file_.is_open()) throw_disk_error(path_, "cannot create", errno);
  if (::ftruncate(file_.get(), size) != 0) throw_disk_error(path_, fmt::format("cannot grow to {} bytes", size), errno);
  if (size > 0) reserve(path_, file_.get(), size);
}

void OutputFile::write_at(int64_t offset, std::span<const std::byte> bytes) {
  Interruptions interruptions;
  while (!bytes.empty()) {
    ssize_t n = ::pwrite(file_.get(), bytes.data(), bytes.size(), offset);
    if (n < 0 && interruptions.may_try_again()) continue;
    if (n < 0) throw_disk_error(path_, "cannot write", errno);
    interruptions.passed();
    bytes = bytes.subspan(static_cast<size_t>(n));
    offset += n;
  }
}

void OutputFile::flush() {
  if (::fsync(file_.get()) != 0) throw_disk_error(path_, "cannot flush to disk", errno);
}

}  // namespace sextant
