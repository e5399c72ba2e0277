#include "doctor/host.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <fstream>

namespace sextant {

namespace fs = std::filesystem;

namespace {

std::optional<Space> disk_space_of(const fs::path& path) {
  struct statvfs s {};
  if (::statvfs(path.c_str(), &s) != 0) return std::nullopt;
  return Space{s.f_blocks * s.f_frsize, s.f_bavail * s.f_frsize, s.f_files, s.f_favail};
}

// Without the newline at its end.
std::optional<std::string> text_of(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad()) return std::nullopt;
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

bool holds_any(const std::string& path) {
  std::error_code none;
  fs::directory_iterator entries(path, none);
  return !none && entries != fs::directory_iterator();
}

std::optional<Limit> limit_of(LimitKind kind) {
  auto resource = kind == LimitKind::open_files      ? RLIMIT_NOFILE
                  : kind == LimitKind::locked_memory ? RLIMIT_MEMLOCK
                                                     : RLIMIT_NPROC;
  struct rlimit limit {};
  if (::getrlimit(resource, &limit) != 0) return std::nullopt;
  auto number = [](rlim_t n) { return n == RLIM_INFINITY ? kUnlimited : static_cast<uint64_t>(n); };
  return Limit{number(limit.rlim_cur), number(limit.rlim_max)};
}

// A library that is opened for one question.
class Library {
 public:
  explicit Library(std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (!handle_) handle_ = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  }
  ~Library() {
    if (handle_) ::dlclose(handle_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  template <class Function>
  Function* find(const char* name) const {
    return handle_ ? reinterpret_cast<Function*>(::dlsym(handle_, name)) : nullptr;
  }

 private:
  void* handle_ = nullptr;
};

std::optional<std::string> cuda_version() {
  Library cudart({"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", "libcudart.so"});
  int version = 0;
  auto ask = cudart.find<int(int*)>("cudaRuntimeGetVersion");
  if (!ask || ask(&version) != 0) return std::nullopt;
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::optional<std::string> cublas_version() {
  Library cublas({"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11", "libcublasLt.so"});
  auto ask = cublas.find<size_t()>("cublasLtGetVersion");
  if (!ask) return std::nullopt;
  size_t n = ask();
  return n >= 100000 ? fmt::format("{}.{}.{}", n / 10000, n / 100 % 100, n % 100)
                     : fmt::format("{}.{}.{}", n / 1000, n / 100 % 10, n % 100);
}

std::optional<std::string> cudnn_version() {
  Library cudnn({"libcudnn.so.9", "libcudnn.so.8", "libcudnn.so"});
  auto ask = cudnn.find<size_t()>("cudnnGetVersion");
  if (!ask) return std::nullopt;
  size_t n = ask();
  return n >= 90000 ? fmt::format("{}.{}.{}", n / 10000, n / 100 % 100, n % 100)
                    : fmt::format("{}.{}.{}", n / 1000, n / 100 % 10, n % 100);
}

std::optional<std::string> nccl_version() {
  Library nccl({"libnccl.so.2"});
  int n = 0;
  auto ask = nccl.find<int(int*)>("ncclGetVersion");
  if (!ask || ask(&n) != 0) return std::nullopt;
  return fmt::format("{}.{}.{}", n / 10000, n / 100 % 100, n % 100);
}

// Asked of the program itself, which is linked with one MPI library or none.
std::optional<std::string> mpi_version() {
  std::array<char, 8192> text{};  // the standard's own bound
  int length = 0;
  auto ask = reinterpret_cast<int (*)(char*, int*)>(::dlsym(RTLD_DEFAULT, "MPI_Get_library_version"));
  if (!ask || ask(text.data(), &length) != 0) return std::nullopt;
  std::string version(text.data(), static_cast<size_t>(length));
  return version.substr(0, version.find_first_of(",\n"));
}

std::optional<std::string> version_of(std::string_view library) {
  if (library == "cuda") return cuda_version();
  if (library == "cublas") return cublas_version();
  if (library == "cudnn") return cudnn_version();
  if (library == "nccl") return nccl_version();
  return library == "mpi" ? mpi_version() : std::nullopt;
}

// One record of the log at each read; when the reader was too slow for it, EPIPE and the next one.
std::optional<std::string> kernel_log() {
  int file = ::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::string log;
  std::array<char, 8192> record{};
  for (;;) {
    ssize_t got = ::read(file, record.data(), record.size());
    if (got < 0 && errno == EPIPE) continue;
    if (got <= 0) break;
    log.append(record.data(), static_cast<size_t>(got));
  }
  ::close(file);
  return log;
}

double wall_clock() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::optional<bool> clock_is_kept() {
  struct timex state {};
  int answer = ::adjtimex(&state);
  if (answer < 0) return std::nullopt;
  return answer != TIME_ERROR && !(state.status & STA_UNSYNC);
}

}  // namespace

Host this_host(const fs::path& directory) {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  Host host{.name = name.data(),
            .file = text_of,
            .holds_any = holds_any,
            .directories = {directory},
            .space = disk_space_of,
            .limit = limit_of,
            .version_of = version_of,
            .kernel_log = kernel_log,
            .gpus = ask_gpus,
            .now = wall_clock,
            .clock_is_kept = clock_is_kept};
  if (std::error_code none; !fs::equivalent(directory, "/tmp", none)) host.directories.push_back("/tmp");
  return host;
}

std::optional<uint64_t> number_after(std::string_view text, std::string_view key) {
  size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  at = text.find_first_of("0123456789", at + key.size());
  if (at == std::string_view::npos) return std::nullopt;
  uint64_t number = 0;
  auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

}  // namespace sextant
