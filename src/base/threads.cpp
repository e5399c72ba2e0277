#include "base/threads.h"

#include <sched.h>

#include <atomic>
#include <system_error>

#include "base/error.h"

namespace sextant {

namespace {

// A worker spins this long before it sleeps: between two ops of a step the next task is microseconds away.
constexpr int kSpins = 4000;

inline void relax() {
#if defined(__aarch64__)
  asm volatile("yield");
#elif defined(__x86_64__)
  asm volatile("pause");
#endif
}

}  // namespace

struct ThreadTeam::Shared {
  std::mutex mutex;
  std::condition_variable wake;
  std::atomic<uint64_t> generation{0};  // one more for every parallel_for
  std::atomic<int64_t> next{0};
  std::atomic<int> busy{0};  // workers that have not finished the current generation
  std::atomic<bool> stop{false};
  int64_t tasks = 0;
  Call call = nullptr;
  const void* body = nullptr;
  std::vector<std::thread> workers;

  void take_tasks(int thread) {
    for (;;) {
      int64_t task = next.fetch_add(1, std::memory_order_relaxed);
      if (task >= tasks) return;
      call(body, task, thread);
    }
  }

  void work(int thread) {
    uint64_t seen = 0;
    for (;;) {
      for (int spin = 0; spin < kSpins && generation.load(std::memory_order_acquire) == seen; ++spin) relax();
      if (generation.load(std::memory_order_acquire) == seen) {
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return generation.load(std::memory_order_acquire) != seen; });
      }
      seen = generation.load(std::memory_order_acquire);
      if (stop.load(std::memory_order_acquire)) return;
      take_tasks(thread);
      busy.fetch_sub(1, std::memory_order_release);
    }
  }

  void announce() {
    {
      std::lock_guard lock(mutex);
      generation.fetch_add(1, std::memory_order_release);
    }
    wake.notify_all();
  }

  void end() {
    stop.store(true, std::memory_order_release);
    announce();
    for (std::thread& worker : workers) worker.join();
  }
};

std::thread start_thread(std::string_view what, std::function<void()> work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error& error) {
    throw RunError("", fmt::format("could not start the thread of {}: {}", what, error.code().message()),
                   "lower train.threads (or --threads) or the number of ranks on this machine, or raise its limit on "
                   "processes and "
                   "threads (ulimit -u; pids.max of the container)");
  }
}

int core_count() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) > 0) return CPU_COUNT(&allowed);
  unsigned n = std::thread::hardware_concurrency();
  return n == 0 ? 1 : static_cast<int>(n);
}

ThreadTeam::ThreadTeam(int threads) : size_(threads > 0 ? threads : core_count()) {
  if (size_ == 1) return;
  shared_ = std::make_unique<Shared>();
  try {
    for (int thread = 1; thread < size_; ++thread)
      shared_->workers.push_back(start_thread(fmt::format("worker {} of {}", thread + 1, size_),
                                              [shared = shared_.get(), thread] { shared->work(thread); }));
  } catch (...) {
    shared_->end();
    throw;
  }
}

ThreadTeam::~ThreadTeam() {
  if (shared_) shared_->end();
}

void ThreadTeam::run(int64_t tasks, Call call, const void* body) {
  Shared& s = *shared_;
  s.tasks = tasks;
  s.call = call;
  s.body = body;
  s.next.store(0, std::memory_order_relaxed);
  s.busy.store(size_ - 1, std::memory_order_relaxed);
  s.announce();
  s.take_tasks(0);
  for (int spin = 0; s.busy.load(std::memory_order_acquire) != 0; ++spin)
    spin < kSpins ? relax() : std::this_thread::yield();
}

}  // namespace sextant
