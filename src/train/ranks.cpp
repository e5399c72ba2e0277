#include "train/ranks.h"

#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.h"
#include "comm/thread_transport.h"

namespace sextant {

namespace {

class FirstError {
 public:
  void keep(std::exception_ptr error) {
    std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace

void run_ranks(int ranks, std::chrono::milliseconds timeout, const std::function<void(const RankSeat&)>& work) {
  if (ranks == 1) return work({});
  ThreadHub hub(ranks, timeout);
  FirstError first;
  auto run = [&](int rank) {
    Transport& transport = hub.transport(rank);
    try {
      work({rank, &transport});
    } catch (const std::exception& error) {
      first.keep(std::current_exception());
      transport.abort(fmt::format("rank {} ended with: {}", rank, error.what()));
    }
  };
  std::vector<std::thread> threads;
  for (int rank = 1; rank < ranks; ++rank) threads.emplace_back(run, rank);
  run(0);
  for (std::thread& thread : threads) thread.join();
  first.rethrow();
}

}  // namespace sextant
