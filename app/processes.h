// The processes that mpirun or srun started together with this one, as far as `train` needs them. Made before the last
// catch, so that errors are printed before MPI ends everything. Without a launcher, and in builds without MPI, it does
// nothing.
#pragma once

#include <chrono>
#include <memory>

#include "base/exit_code.h"
#include "comm/rank_status.h"
#include "comm/ranks.h"

namespace sextant {

class Processes {
 public:
  Processes();
  ~Processes();
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  // Meets the others when there are any. UserError when a launcher started this, but the build has no MPI.
  void join();

  // The ranks that this process runs: one rank among processes, or all ranks as threads.
  Launch launch(std::chrono::milliseconds timeout, const StatusLookup& status_lookup);

  // How long this process may still be there after a failure, and how long it waits for the others after success.
  void bound_end(std::chrono::milliseconds after_failure, std::chrono::milliseconds after_success);

  // Reports to the launcher the exit code that this process is about to return.
  void leave_with(ExitCode exit_code);

  bool leads() const;  // is the first, or alone

  // Waits a moment, on all processes but the first: when all have met the same error, the first one ends them.
  void wait_for_leader_report() const;
  // Waits a moment, so that the process with the cause of the failure sets the exit code.
  void wait_for_failing_rank() const;

 private:
  struct Joined;
  std::unique_ptr<Joined> joined_;
};

}  // namespace sextant
