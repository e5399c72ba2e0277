// One team of threads owns the cores. `parallel_for` hands out fixed tasks; what a task computes may depend on its
// index only, never on which thread runs it, so results do not depend on the thread count.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

namespace sextant {

// More than any machine has cores for.
constexpr int64_t kMaxThreads = 4096;

// A thread for `what` ("rank 3 of 8"). RunError that names it where the system starts no more of them.
std::thread start_thread(std::string_view what, std::function<void()> work);

class ThreadTeam {
 public:
  explicit ThreadTeam(int threads);  // 0 = one per core
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return size_; }

  // Runs body(task, thread) for every task in [0, tasks), thread in [0, size()). Returns when all are done.
  // Allocates nothing. The body must not throw and must not call parallel_for again.
  template <class Body>
  void parallel_for(int64_t tasks, const Body& body) {
    if (size_ == 1 || tasks <= 1) {
      for (int64_t task = 0; task < tasks; ++task) body(task, 0);
      return;
    }
    run(
        tasks, [](const void* b, int64_t task, int thread) { (*static_cast<const Body*>(b))(task, thread); }, &body);
  }

 private:
  using Call = void (*)(const void* body, int64_t task, int thread);
  struct Shared;

  void run(int64_t tasks, Call call, const void* body);

  int size_;
  std::unique_ptr<Shared> shared_;
};

int core_count();

}  // namespace sextant
