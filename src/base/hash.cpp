#include "base/hash.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <vector>

#include "base/error.h"
#include "base/interruptions.h"
#include "base/path_error.h"

namespace sextant {

struct ContentHash::State {
  State() : xxh3(XXH3_createState()) {
    if (!xxh3) throw std::bad_alloc();
    XXH3_64bits_reset(xxh3);
  }
  ~State() { XXH3_freeState(xxh3); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  XXH3_state_t* xxh3;
};

ContentHash::ContentHash() : state_(std::make_unique<State>()) {}
ContentHash::~ContentHash() = default;
ContentHash::ContentHash(ContentHash&&) noexcept = default;
ContentHash& ContentHash::operator=(ContentHash&&) noexcept = default;

void ContentHash::add(std::span<const std::byte> bytes) {
  if (!bytes.empty()) XXH3_64bits_update(state_->xxh3, bytes.data(), bytes.size());
}

uint64_t ContentHash::value() const {
  return XXH3_64bits_digest(state_->xxh3);
}

uint64_t hash_file(const std::filesystem::path& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw_unreadable(path, errno, "a readable file");
  std::unique_ptr<int, void (*)(int*)> close_at_end(&fd, [](int* opened) { ::close(*opened); });
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
  ContentHash hash;
  std::vector<std::byte> piece(size_t{1} << 20);
  for (Interruptions interruptions;; interruptions.passed()) {
    ssize_t n = 0;
    do n = ::read(fd, piece.data(), piece.size());
    while (n < 0 && interruptions.may_try_again());
    if (n < 0) throw RunError(path.string(), fmt::format("cannot read: {}", std::strerror(errno)));
    if (n == 0) return hash.value();
    hash.add(std::span(piece).first(static_cast<size_t>(n)));
  }
}

std::string hex(uint64_t hash) {
  return fmt::format("{:016x}", hash);
}

}  // namespace sextant
