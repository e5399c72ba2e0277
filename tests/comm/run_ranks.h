// Ranks as threads: each runs the body with its transport; a rank that throws aborts the others, as the program does.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "comm/thread_transport.h"

namespace sextant {

struct RankEnd {
  std::string error;     // empty when all went well
  bool is_echo = false;  // RunEnded
  bool is_run_error = false;
};

inline RankEnd end_of_rank(Transport& transport, const std::function<void(Transport&)>& body) {
  try {
    body(transport);
    return {};
  } catch (const RunEnded& error) {
    return {error.what(), true, true};
  } catch (const RunError& error) {
    transport.abort(error.what());
    return {error.what(), false, true};
  } catch (const std::exception& error) {
    transport.abort(error.what());
    return {error.what(), false, false};
  }
}

inline std::vector<RankEnd> run_ranks(ThreadHub& hub, int ranks, const std::function<void(Transport&)>& body) {
  std::vector<RankEnd> ends(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] { ends[static_cast<size_t>(rank)] = end_of_rank(hub.transport(rank), body); });
  for (std::thread& thread : threads) thread.join();
  return ends;
}

}  // namespace sextant
