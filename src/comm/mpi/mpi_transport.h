// One rank in each process, messages by MPI. Works with every MPI library: nothing beyond the standard is used.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "comm/transport.h"

namespace sextant {

// MPI from start to end. Made once, before the last catch of the program, so that errors are printed before it goes.
// When the run failed it does not wait for ranks that will never come: it leaves the others a moment to say why, then
// ends them all. After a run that went well it waits for the others, so let a barrier be the last thing they do. Both
// are bounded: this process goes in time even when the launcher no longer answers.
class MpiSession {
 public:
  MpiSession();  // UserError when the launcher and the MPI library do not know each other
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::string& host() const { return host_; }
  int ranks_on_host() const { return ranks_on_host_; }
  // The cores this process may use, shared fairly: with those of the ranks on its host that may use the same ones.
  int cores_per_rank() const { return cores_per_rank_; }

  // How long the process may still be there after a failure, and how long it waits for the others after success.
  void bound_end(std::chrono::milliseconds after_failure, std::chrono::milliseconds after_success);

  // Exit code that the process will return. After a failure the session ends every process, and the launcher reports
  // this code; the time limit for that starts at the first call.
  void fail_with(ExitCode code);
  void succeed_with(ExitCode code) { success_ = code; }

 private:
  void meet_neighbours();

  int rank_ = 0, size_ = 1;
  ExitCode success_ = ExitCode::finished;
  std::atomic<ExitCode> failure_{ExitCode::finished};  // finished: there was none. Set by whichever thread meets it
  std::chrono::milliseconds after_failure_{5000}, after_success_{600'000};
  int ranks_on_host_ = 1, cores_per_rank_ = 1;
  std::string host_;
};

// The transport of this process; every process of the session makes one at the same time. The session outlives it.
// Abort tells the others by a message of its own: they hear of it in their next call. The status_lookup serves the
// words of time-outs alone.
std::unique_ptr<Transport> make_mpi_transport(MpiSession& session, std::chrono::milliseconds timeout,
                                              StatusLookup status_lookup = {});

}  // namespace sextant
