// Transport: messages between the ranks of one run. Every rank holds one; thread_transport.h puts all ranks in one
// process, comm/mpi one rank in each. Collectives are written once, over these few calls (collectives.h).
//
// Calls of one rank may come from several of its threads (lanes). Two messages of the same sender, receiver and tag
// arrive in the order in which they were sent; lanes that run side by side use different tags. A send and the receive
// it meets must be of the same size: anything else is a bug and ends the run.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>

#include "base/error.h"
#include "comm/rank_status.h"
#include "comm/tags.h"

namespace sextant {

// Thrown to ranks whom another rank's abort has ended; that rank holds the cause, this only repeats it. It has the
// exit code of the cause.
class RunEnded : public RunError {
 public:
  using RunError::RunError;
};

// A message under way. Every ticket is waited for once.
struct Ticket {
  int32_t slot = -1;
};

class Transport {
 public:
  explicit Transport(std::chrono::milliseconds timeout = std::chrono::milliseconds(0))
      : longest_wait_ms_(timeout.count()), wait_ms_(timeout.count()) {}
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Both return at once, and allocate nothing once the run is warm. The bytes belong to the transport until wait().
  virtual Ticket send(int to, int tag, std::span<const std::byte> bytes) = 0;
  virtual Ticket receive(int from, int tag, std::span<std::byte> bytes) = 0;

  // Returns when the message has been delivered. Throws RunEnded when a rank has called abort, and RunError with
  // ExitCode::rank_lost when nothing came for the time-out: then this rank aborts the others first.
  virtual void wait(Ticket ticket) = 0;

  // Ends the run for every rank: all who wait, send or receive now or later get a RunEnded that gives this reason. The
  // first reason counts. When abort returns, and when any call has thrown, the bytes of this rank's messages are its
  // own again.
  void abort(const std::string& reason, ExitCode code = ExitCode::run_failed) { end_run(reason, code); }

  // How long a wait of this rank may last, from its next wait on. Messages of a save keep the time-out that the
  // transport was made with: they wait for disks.
  void set_timeout(std::chrono::milliseconds timeout) { wait_ms_.store(timeout.count(), std::memory_order_relaxed); }
  std::chrono::milliseconds timeout_for(int tag) const {
    return std::chrono::milliseconds(tag == kSaveTag ? longest_wait_ms_ : wait_ms_.load(std::memory_order_relaxed));
  }

  // Current activity of this rank: written by the code that runs on it, shown in the errors of ranks that wait.
  RankStatus& rank_status() { return rank_status_; }
  const RankStatus& rank_status() const { return rank_status_; }

  // "rank 2 in step 7, F 0 3, at layers.1.attn.out.moved (all_reduce over tp)": the place of an error.
  std::string here() const {
    std::string at = rank_status_.seen().text();
    return fmt::format("rank {}{}{}", rank(), at.empty() ? "" : " ", at);
  }

 private:
  virtual void end_run(const std::string& reason, ExitCode code) = 0;

  int64_t longest_wait_ms_;
  std::atomic<int64_t> wait_ms_;
  RankStatus rank_status_;
};

// Stands in the scope that owns the bytes of messages under way: an exception that leaves the scope ends the run before
// those bytes go, so that no other rank writes to memory that is no longer there.
class AbortOnThrow {
 public:
  explicit AbortOnThrow(Transport& transport) : transport_(transport), exceptions_(std::uncaught_exceptions()) {}
  ~AbortOnThrow() {
    if (std::uncaught_exceptions() == exceptions_) return;
    transport_.abort(fmt::format("rank {} failed; its own error says why", transport_.rank()));
  }
  AbortOnThrow(const AbortOnThrow&) = delete;
  AbortOnThrow& operator=(const AbortOnThrow&) = delete;

 private:
  Transport& transport_;
  int exceptions_;
};

}  // namespace sextant
