#include "base/files.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/interruptions.h"
#include "base/path_error.h"
#include "base/run_file.h"
#include "base/temporary_name.h"
#include "base/units.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags, int mode = 0666) : fd_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

[[noreturn]] void cannot_read(const fs::path& path) {
  if (errno == ENOENT) throw UserError({.place = path.string(), .got = "file not found"});
  if (errno == EISDIR) throw UserError({.place = path.string(), .got = "is a directory", .expected = "a file"});
  throw_unreadable(path, errno, "a readable file");
}

struct stat status_of(const fs::path& path, int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) cannot_read(path);
  return info;
}

[[noreturn]] void refuse_kind(const fs::path& path, std::string_view kind) {
  throw UserError(
      {.place = path.string(), .got = fmt::format("is {}, not a regular file", kind), .expected = "a regular file"});
}

// True for the unnamed pipe that a shell connects for <(command) or to /dev/stdin; false for a named pipe.
bool is_pipe_of_shell(const struct stat& info, int fd) {
  struct statfs system {};
  return S_ISFIFO(info.st_mode) && ::fstatfs(fd, &system) == 0 && system.f_type == PIPEFS_MAGIC;
}

// A pipe does not say how much will come; what is read whole from one is a config or a table.
constexpr size_t kMostFromPipe = size_t{64} << 20;

}  // namespace

int open_for_reading(const fs::path& path) {
  // A named pipe is opened without waiting for somebody who writes into it.
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) cannot_read(path);
  Descriptor file(fd);
  struct stat info = status_of(path, fd);
  if (S_ISDIR(info.st_mode)) {
    errno = EISDIR;
    cannot_read(path);
  }
  if (S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode)) refuse_kind(path, "a device");
  if (!S_ISREG(info.st_mode) && !is_pipe_of_shell(info, fd))
    refuse_kind(path, S_ISFIFO(info.st_mode) ? "a named pipe" : "a socket");
  if (::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK) != 0) cannot_read(path);
  return file.release();
}

std::string read_file(const fs::path& path) {
  Descriptor file(open_for_reading(path));
  struct stat info = status_of(path, file.get());
  std::string content(S_ISREG(info.st_mode) ? static_cast<size_t>(info.st_size) : 0, '\0');
  size_t done = 0;
  Interruptions interruptions;
  // Files of /proc and pipes report size 0, so read on until the end rather than until the size.
  for (;;) {
    if (done == content.size()) content.resize(content.size() + 4096);
    ssize_t n = ::read(file.get(), content.data() + done, content.size() - done);
    if (n < 0 && interruptions.may_try_again()) continue;
    if (n < 0) cannot_read(path);
    interruptions.passed();
    if (n == 0) break;
    done += static_cast<size_t>(n);
    if (S_ISFIFO(info.st_mode) && done > kMostFromPipe)
      throw UserError({.place = path.string(),
                       .got = fmt::format("more than {} came out of a pipe", human(Bytes{kMostFromPipe})),
                       .expected = "a regular file"});
  }
  content.resize(done);
  return content;
}

void flush_to_disk(const fs::path& path) {
  Descriptor file(path, O_RDONLY);
  if (!file.open() || ::fsync(file.get()) != 0)
    throw RunError(path.string(), fmt::format("cannot flush to disk: {}", std::strerror(errno)));
}

void write_file_atomically(const fs::path& path, std::string_view content) {
  fs::path temporary = path.parent_path() / temporary_name(path.filename().string());
  auto fail = [&](std::string_view doing) {
    int why = errno;
    ::unlink(temporary.c_str());
    throw RunError(path.string(), fmt::format("{}: {}", doing, std::strerror(why)),
                   why == ENOSPC ? "free some space; what was saved before is untouched" : "");
  };
  {
    Descriptor file(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
    if (!file.open()) fail("cannot create");
    if (!write_all(file.get(), content)) fail("cannot write");
    if (::fsync(file.get()) != 0) fail("cannot flush to disk");
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) fail("cannot rename into place");
  flush_to_disk(path.has_parent_path() ? path.parent_path() : fs::path("."));
}

void remove_temporary_files(const fs::path& directory) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (parse_temporary_name(at->path().filename().string()) && fs::is_regular_file(at->symlink_status(ignored)))
      found.push_back(at->path());
  }
  // Quiet: what cannot be removed now is a leftover for the next time.
  for (const fs::path& file : found) fs::remove(file, error);
}

MappedFile::MappedFile(const fs::path& path) {
  Descriptor file(open_for_reading(path));
  struct stat info = status_of(path, file.get());
  if (!S_ISREG(info.st_mode)) refuse_kind(path, "a pipe");
  size_ = static_cast<size_t>(info.st_size);
  if (size_ == 0) return;
  void* at = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (at == MAP_FAILED) cannot_read(path);
  data_ = static_cast<const std::byte*>(at);
  guard_ = MappingGuard(bytes(), path);
}

MappedFile::~MappedFile() {
  guard_ = {};
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      guard_(std::move(other.guard_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(guard_, other.guard_);
  return *this;
}

SizeWatch::SizeWatch(const fs::path& path) : name_(path.string()), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (fd_ < 0) cannot_read(path);
  struct stat info {};
  if (::fstat(fd_, &info) == 0) size_ = info.st_size;
}

SizeWatch::~SizeWatch() {
  if (fd_ >= 0) ::close(fd_);
}

SizeWatch::SizeWatch(SizeWatch&& other) noexcept
    : name_(std::move(other.name_)), fd_(std::exchange(other.fd_, -1)), size_(other.size_) {}

SizeWatch& SizeWatch::operator=(SizeWatch&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  return *this;
}

void SizeWatch::check() const {
  struct stat info {};
  if (::fstat(fd_, &info) != 0) throw RunError(name_, fmt::format("cannot read any more: {}", std::strerror(errno)));
  if (info.st_size < size_)
    throw RunError(
        name_, fmt::format("the file was cut short while it was in use: it has {} bytes, and had {} when it was opened",
                           info.st_size, size_));
}

}  // namespace sextant
