#include "base/mapping_guard.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <utility>

#include "base/exit_code.h"

namespace sextant {

// Read by a signal handler, on any thread and at any moment: so an entry is never freed, only used again, and what to
// say is written out beforehand.
struct MappingGuard::Entry {
  std::atomic<uintptr_t> begin = 0;  // 0: free
  std::atomic<uintptr_t> end = 0;
  std::array<char, 1024> message{};
  size_t length = 0;
  Entry* next = nullptr;
};

// One for the process, as its signal handlers are.
class MappingGuard::Registry {
 public:
  static Entry* take(std::span<const std::byte> mapping, const std::filesystem::path& path) {
    std::lock_guard lock(mutex_);
    if (!first_.load()) install();
    Entry* entry = first_.load();
    while (entry && entry->begin.load() != 0) entry = entry->next;
    bool fresh = !entry;
    if (fresh) entry = new Entry{};
    entry->length = std::min(
        entry->message.size(),
        fmt::format_to_n(entry->message.data(), entry->message.size(),
                         "sextant: {}: the file was cut short, or cannot be read any more, while it was in use; "
                         "it had {} bytes when it was opened\n",
                         path.string(), mapping.size())
            .size);
    auto begin = reinterpret_cast<uintptr_t>(mapping.data());
    entry->end.store(begin + mapping.size());
    entry->begin.store(begin);
    if (fresh) {
      entry->next = first_.load();
      first_.store(entry);
    }
    return entry;
  }

  static void give_back(Entry* entry) {
    std::lock_guard lock(mutex_);
    entry->begin.store(0);
  }

 private:
  static void install() {
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGBUS, &action, &before_);
  }

  static void on_bus_error(int, siginfo_t* info, void*) {
    auto at = reinterpret_cast<uintptr_t>(info->si_addr);
    for (const Entry* entry = first_.load(); entry; entry = entry->next) {
      uintptr_t begin = entry->begin.load();
      if (begin == 0 || at < begin || at >= entry->end.load()) continue;
      // Other threads are likely to read the same file: one of them reports, and ends them all.
      while (told_.test_and_set()) ::pause();
      [[maybe_unused]] ssize_t ignored = ::write(STDERR_FILENO, entry->message.data(), entry->length);
      ::_exit(number_of(ExitCode::run_failed));
    }
    // Not ours: returning raises a fault again, for whoever handled it before; what another process sent is sent again.
    ::sigaction(SIGBUS, &before_, nullptr);
    if (info->si_code <= 0) ::raise(SIGBUS);
  }

  static inline std::mutex mutex_;
  static inline std::atomic<Entry*> first_ = nullptr;
  static inline std::atomic_flag told_ = ATOMIC_FLAG_INIT;
  static inline struct sigaction before_ {};
};

MappingGuard::MappingGuard(std::span<const std::byte> mapping, const std::filesystem::path& path)
    : entry_(Registry::take(mapping, path)) {}

MappingGuard::~MappingGuard() {
  if (entry_) Registry::give_back(entry_);
}

MappingGuard::MappingGuard(MappingGuard&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}

MappingGuard& MappingGuard::operator=(MappingGuard&& other) noexcept {
  std::swap(entry_, other.entry_);
  return *this;
}

}  // namespace sextant
