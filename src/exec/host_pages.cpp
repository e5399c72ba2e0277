#include "exec/host_pages.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/units.h"

namespace sextant {

namespace {

constexpr int64_t kSmallestPage = 4096;
constexpr int64_t kTouchedByATask = int64_t{64} << 20;  // a multiple of huge pages, so that no two threads share one

}  // namespace

HostPages::HostPages(int64_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  void* at = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED)
    throw RunError("memory", fmt::format("cannot allocate {} of the host's memory for the arena", human(Bytes{bytes})),
                   "use a smaller batch.microbatch or batch.seq, train.recompute = \"full\", or more memory");
  ::madvise(at, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  data_ = static_cast<std::byte*>(at);
}

HostPages::~HostPages() {
  if (data_) ::munmap(data_, static_cast<size_t>(bytes_));
}

HostPages::HostPages(HostPages&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

HostPages& HostPages::operator=(HostPages&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void HostPages::touch(ThreadTeam& team) const {
  int64_t tasks = (bytes_ + kTouchedByATask - 1) / kTouchedByATask;
  team.parallel_for(tasks, [this](int64_t task, int) {
    int64_t end = std::min(bytes_, (task + 1) * kTouchedByATask);
    for (int64_t at = task * kTouchedByATask; at < end; at += kSmallestPage)
      *static_cast<volatile std::byte*>(data_ + at) = std::byte{0};
  });
}

}  // namespace sextant
