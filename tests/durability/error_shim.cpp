// Preloaded into a program (LD_PRELOAD), makes calls of it fail, or its wall clock jump:
//   SEXTANT_SHIM_ERROR=CALL,ERRNO,PATH,FROM,TO,COUNTER   calls FROM to TO (counted from 1 over all processes, by the
//                                                        bytes of the file COUNTER) on PATH fail with ERRNO
//   SEXTANT_SHIM_CLOCK=FILE,SECONDS                      the wall clock is SECONDS ahead once FILE is there
// CALL is list (a directory), look (at the status of a file), write, or fallocate. Where nothing is listed, a file need
// only begin with PATH.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

std::vector<std::string> words_of(const char* variable) {
  std::vector<std::string> words;
  const char* given = std::getenv(variable);
  for (std::string rest = given ? given : ""; !rest.empty();) {
    size_t comma = rest.find(',');
    words.push_back(rest.substr(0, comma));
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
  }
  return words;
}

struct Failure {
  std::string call, path, counter;
  int error = 0;
  long from = 0, to = 0;
};

const Failure& failure() {
  static const Failure* const asked = [] {
    auto* found = new Failure;
    std::vector<std::string> words = words_of("SEXTANT_SHIM_ERROR");
    if (words.size() == 6)
      *found = {.call = words[0],
                .path = words[2],
                .counter = words[5],
                .error = std::atoi(words[1].c_str()),
                .from = std::atol(words[3].c_str()),
                .to = std::atol(words[4].c_str())};
    return found;
  }();
  return *asked;
}

// By system calls, so that nothing here is seen as the program's doing.
long count_one() {
  int fd = static_cast<int>(
      syscall(SYS_openat, AT_FDCWD, failure().counter.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (fd < 0) return 0;
  syscall(SYS_write, fd, ".", size_t{1});
  struct stat about {};
  long count = fstat(fd, &about) == 0 ? static_cast<long>(about.st_size) : 0;
  close(fd);
  return count;
}

// Sets errno where it does.
bool fails(const char* call, const std::string& path) {
  const Failure& asked = failure();
  bool is_place = asked.call == "list" ? path == asked.path : path.starts_with(asked.path);
  if (asked.call != call || !is_place) return false;
  long count = count_one();
  if (count < asked.from || count > asked.to) return false;
  errno = asked.error;
  return true;
}

std::string path_of(int fd) {
  char link[64], path[PATH_MAX];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, PATH_MAX - 1);
  return length > 0 ? std::string(path, static_cast<size_t>(length)) : std::string();
}

bool is_asked(const char* call) {
  return failure().call == call;
}

long clock_jump() {
  static const std::vector<std::string>* const words = new std::vector<std::string>(words_of("SEXTANT_SHIM_CLOCK"));
  if (words->size() != 2 || syscall(SYS_faccessat, AT_FDCWD, (*words)[0].c_str(), F_OK) != 0) return 0;
  return std::atol((*words)[1].c_str());
}

}  // namespace

extern "C" {

DIR* opendir(const char* path) {
  if (is_asked("list") && fails("list", path)) return nullptr;
  return next<DIR*(const char*)>("opendir")(path);
}
DIR* fdopendir(int fd) {
  if (is_asked("list") && fails("list", path_of(fd))) return nullptr;
  return next<DIR*(int)>("fdopendir")(fd);
}
int stat(const char* path, struct stat* about) noexcept {
  if (is_asked("look") && fails("look", path)) return -1;
  return next<int(const char*, struct stat*)>("stat")(path, about);
}
int lstat(const char* path, struct stat* about) noexcept {
  if (is_asked("look") && fails("look", path)) return -1;
  return next<int(const char*, struct stat*)>("lstat")(path, about);
}
ssize_t write(int fd, const void* data, size_t size) {
  if (is_asked("write") && fails("write", path_of(fd))) return -1;
  return next<ssize_t(int, const void*, size_t)>("write")(fd, data, size);
}
int fallocate(int fd, int mode, off_t offset, off_t size) {
  if (is_asked("fallocate") && fails("fallocate", path_of(fd))) return -1;
  return next<int(int, int, off_t, off_t)>("fallocate")(fd, mode, offset, size);
}
int fallocate64(int fd, int mode, off64_t offset, off64_t size) {
  if (is_asked("fallocate") && fails("fallocate", path_of(fd))) return -1;
  return next<int(int, int, off64_t, off64_t)>("fallocate64")(fd, mode, offset, size);
}
int clock_gettime(clockid_t clock, timespec* time) noexcept {
  int result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (result == 0 && clock == CLOCK_REALTIME) time->tv_sec += clock_jump();
  return result;
}

}  // extern "C"
