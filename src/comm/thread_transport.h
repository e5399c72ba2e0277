// All ranks in one process: a message is one copy from the sender's bytes to the receiver's, made by whoever comes
// second. Enters: the number of ranks and the time-out of every wait. Leaves: one Transport per rank, usable from any
// thread.
#pragma once

#include <chrono>
#include <memory>

#include "comm/transport.h"

namespace sextant {

// Where the ranks of one process meet. It outlives the transports it hands out.
class ThreadHub {
 public:
  ThreadHub(int ranks, std::chrono::milliseconds timeout);
  ~ThreadHub();
  ThreadHub(const ThreadHub&) = delete;
  ThreadHub& operator=(const ThreadHub&) = delete;

  // The transport of one rank; stays with the hub.
  Transport& transport(int rank);

 private:
  struct State;
  class RankTransport;
  std::unique_ptr<State> state_;
};

}  // namespace sextant
