#include "bench/rank_threads.h"

#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/threads.h"
#include "comm/thread_transport.h"

namespace sextant {

void run_rank_threads(int ranks, const std::function<void(const RankContext& context)>& work) {
  constexpr std::chrono::minutes kPatience{10};
  if (ranks == 1) return work({});
  ThreadHub hub(ranks, kPatience);
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  auto failed = [&](Transport& transport, const std::exception& error) {
    {
      std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
    }
    transport.abort(error.what());
  };
  for (int rank = 0; rank < ranks; ++rank) {
    Transport& transport = hub.transport(rank);
    auto run = [&, rank] {
      try {
        work({rank, &transport});
      } catch (const RunEnded&) {
        // The error of the rank that ended it is reported.
      } catch (const std::exception& error) {
        failed(transport, error);
      }
    };
    try {
      threads.push_back(start_thread(fmt::format("rank {} of {}", rank, ranks), run));
    } catch (const RunError& error) {
      failed(transport, error);  // those that did start must not wait for it
      break;
    }
  }
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace sextant
