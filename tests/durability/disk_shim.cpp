// Preloaded into a program (LD_PRELOAD), writes what it does to files, in order, as lines of the file that
// SEXTANT_DISK_LOG names:
//   create PATH, write PATH, fsync PATH, rename FROM TO, exchange FROM TO      (fields apart by tabs, paths absolute)
// Calls that fail are not written. What stdio writes by itself is not seen; who checks must not count on every write
// being here.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// By system calls, so that nothing here is seen as the program's doing.
int log_descriptor() {
  static const int fd = [] {
    const char* path = std::getenv("SEXTANT_DISK_LOG");
    return path ? static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644))
                : -1;
  }();
  return fd;
}

void note(const char* event, const char* path, const char* other = nullptr) {
  int why = errno;
  char line[2 * PATH_MAX + 32];
  int length = other ? std::snprintf(line, sizeof line, "%s\t%s\t%s\n", event, path, other)
                     : std::snprintf(line, sizeof line, "%s\t%s\n", event, path);
  if (log_descriptor() >= 0 && length > 0) syscall(SYS_write, log_descriptor(), line, static_cast<size_t>(length));
  errno = why;
}

bool path_of(int fd, char (&path)[PATH_MAX]) {
  char link[64];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, PATH_MAX - 1);
  if (length <= 0 || path[0] != '/') return false;  // a pipe or a socket
  path[length] = '\0';
  return true;
}

void note_descriptor(const char* event, int fd) {
  int why = errno;
  if (char path[PATH_MAX]; path_of(fd, path)) note(event, path);
  errno = why;
}

// Absolute, with the directory's links followed; the last name as it is given.
void absolute(int at, const char* given, char (&path)[PATH_MAX]) {
  char whole[PATH_MAX], base[PATH_MAX] = "";
  if (given[0] == '/')
    std::snprintf(whole, sizeof whole, "%s", given);
  else if (at == AT_FDCWD ? getcwd(base, sizeof base) != nullptr : path_of(at, base))
    std::snprintf(whole, sizeof whole, "%s/%s", base, given);
  else
    std::snprintf(whole, sizeof whole, "%s", given);
  char* slash = std::strrchr(whole, '/');
  if (slash && slash != whole) {
    *slash = '\0';
    if (char parent[PATH_MAX]; realpath(whole, parent)) {
      std::snprintf(path, PATH_MAX, "%s/%s", parent, slash + 1);
      return;
    }
    *slash = '/';
  }
  std::snprintf(path, PATH_MAX, "%s", whole);
}

int renamed(int result, const char* event, int from_at, const char* from, int to_at, const char* to) {
  if (result != 0) return result;
  char source[PATH_MAX], target[PATH_MAX];
  absolute(from_at, from, source);
  absolute(to_at, to, target);
  note(event, source, target);
  return result;
}

template <class Count>
Count written(Count result, int fd) {
  if (result >= 0) note_descriptor("write", fd);
  return result;
}

int opened(int fd, int flags) {
  if (fd >= 0 && (flags & O_CREAT)) note_descriptor("create", fd);
  return fd;
}

int mode_of(int flags, va_list arguments) {
  return flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, int) : 0;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  int mode = mode_of(flags, arguments);
  va_end(arguments);
  return opened(next<int(const char*, int, ...)>("open")(path, flags, mode), flags);
}
int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  int mode = mode_of(flags, arguments);
  va_end(arguments);
  return opened(next<int(const char*, int, ...)>("open64")(path, flags, mode), flags);
}
int openat(int at, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  int mode = mode_of(flags, arguments);
  va_end(arguments);
  return opened(next<int(int, const char*, int, ...)>("openat")(at, path, flags, mode), flags);
}
int mkdir(const char* path, mode_t mode) {
  int result = next<int(const char*, mode_t)>("mkdir")(path, mode);
  if (result != 0) return result;
  char made[PATH_MAX];
  absolute(AT_FDCWD, path, made);
  note("create", made);
  return result;
}

ssize_t write(int fd, const void* data, size_t size) {
  return written(next<ssize_t(int, const void*, size_t)>("write")(fd, data, size), fd);
}
ssize_t writev(int fd, const iovec* parts, int count) {
  return written(next<ssize_t(int, const iovec*, int)>("writev")(fd, parts, count), fd);
}
ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  return written(next<ssize_t(int, const void*, size_t, off_t)>("pwrite")(fd, data, size, offset), fd);
}
ssize_t pwrite64(int fd, const void* data, size_t size, off64_t offset) {
  return written(next<ssize_t(int, const void*, size_t, off64_t)>("pwrite64")(fd, data, size, offset), fd);
}
int ftruncate(int fd, off_t size) noexcept {
  return written(next<int(int, off_t)>("ftruncate")(fd, size), fd);
}
int ftruncate64(int fd, off64_t size) noexcept {
  return written(next<int(int, off64_t)>("ftruncate64")(fd, size), fd);
}
ssize_t sendfile(int to, int from, off_t* offset, size_t size) noexcept {
  return written(next<ssize_t(int, int, off_t*, size_t)>("sendfile")(to, from, offset, size), to);
}
ssize_t copy_file_range(int from, off64_t* from_at, int to, off64_t* to_at, size_t size, unsigned flags) {
  return written(next<ssize_t(int, off64_t*, int, off64_t*, size_t, unsigned)>("copy_file_range")(from, from_at, to,
                                                                                                  to_at, size, flags),
                 to);
}

int fsync(int fd) {
  int result = next<int(int)>("fsync")(fd);
  if (result == 0) note_descriptor("fsync", fd);
  return result;
}
int fdatasync(int fd) {
  int result = next<int(int)>("fdatasync")(fd);
  if (result == 0) note_descriptor("fsync", fd);
  return result;
}

int rename(const char* from, const char* to) noexcept {
  return renamed(next<int(const char*, const char*)>("rename")(from, to), "rename", AT_FDCWD, from, AT_FDCWD, to);
}
int renameat(int from_at, const char* from, int to_at, const char* to) noexcept {
  return renamed(next<int(int, const char*, int, const char*)>("renameat")(from_at, from, to_at, to), "rename", from_at,
                 from, to_at, to);
}
int renameat2(int from_at, const char* from, int to_at, const char* to, unsigned flags) noexcept {
  return renamed(next<int(int, const char*, int, const char*, unsigned)>("renameat2")(from_at, from, to_at, to, flags),
                 flags & RENAME_EXCHANGE ? "exchange" : "rename", from_at, from, to_at, to);
}

}  // extern "C"
