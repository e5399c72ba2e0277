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

// A parallel_for is open while tasks may be left. Workers that come in time are counted, and waited for; one that wakes
// later, because its core was busy with something else, passes it over: nobody waits for those who do nothing.
struct ThreadTeam::Shared {
  std::mutex mutex;
  std::condition_variable wake, finished;
  std::atomic<uint64_t> state{0};  // the number of the parallel_for, whether it is open, and the workers in it
  std::atomic<int64_t> next{0};
  std::atomic<bool> stop{false};
  // Written while nobody is in.
  int64_t tasks = 0;
  Call call = nullptr;
  const void* body = nullptr;
  std::vector<std::thread> workers;

  static constexpr uint64_t kOpen = uint64_t{1} << 16, kNumber = uint64_t{1} << 17;
  static constexpr uint64_t workers_in(uint64_t state) { return state & (kOpen - 1); }
  static constexpr uint64_t number(uint64_t state) { return state / kNumber; }

  void take_tasks(int thread) {
    for (;;) {
      int64_t task = next.fetch_add(1, std::memory_order_relaxed);
      if (task >= tasks) return;
      call(body, task, thread);
    }
  }

  void work(int thread) {
    uint64_t seen = 0;
    auto is_new = [&] { return number(state.load(std::memory_order_acquire)) != seen; };
    for (;;) {
      for (int spin = 0; spin < kSpins && !is_new(); ++spin) relax();
      if (!is_new()) {
        std::unique_lock lock(mutex);
        wake.wait(lock, is_new);
      }
      uint64_t now = state.load(std::memory_order_acquire);
      bool in = false;
      while (!in && (now & kOpen)) in = state.compare_exchange_weak(now, now + 1, std::memory_order_acq_rel);
      seen = number(now);
      // Only now, for the end may have come since the look at is_new: whoever has seen its number sees that it is the
      // end.
      if (!in && stop.load(std::memory_order_acquire)) return;
      if (!in) continue;
      take_tasks(thread);
      uint64_t before = state.fetch_sub(1, std::memory_order_acq_rel);
      if ((before & kOpen) || workers_in(before) > 1) continue;
      { std::lock_guard lock(mutex); }  // who has seen this one in sleeps by now, or will see that it is not
      finished.notify_one();
    }
  }

  void begin(uint64_t open) {
    {
      std::lock_guard lock(mutex);
      state.store((number(state.load(std::memory_order_relaxed)) + 1) * kNumber + open, std::memory_order_release);
    }
    wake.notify_all();
  }

  // A worker that takes long has most likely lost its core to another process: to offer one's own over and over would
  // only cost time slices.
  void close() {
    if (workers_in(state.fetch_and(~kOpen, std::memory_order_acq_rel)) == 0) return;
    auto all_out = [&] { return workers_in(state.load(std::memory_order_acquire)) == 0; };
    for (int spin = 0; spin < kSpins && !all_out(); ++spin) relax();
    if (all_out()) return;
    std::unique_lock lock(mutex);
    finished.wait(lock, all_out);
  }

  void end() {
    stop.store(true, std::memory_order_release);
    begin(0);
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
  s.begin(Shared::kOpen);
  s.take_tasks(0);
  s.close();
}

}  // namespace sextant
