// supervise: keeps a run going until it is done. Starts `train` as a child, watches its exit and its heartbeats, and
// starts it again from the newest whole checkpoint, as the table of causes says (docs/survive.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/verbosity.h"
#include "config/run_config.h"
#include "supervise/heartbeat_watch.h"
#include "supervise/retry_policy.h"
#include "supervise/run_report.h"
#include "supervise/start_command.h"
#include "supervise/stop_signals.h"

namespace sextant {

struct SuperviseRequest {
  RunConfig run;
  std::string config;
  std::vector<std::string> overrides;
  std::filesystem::path out;
  std::vector<std::string> faults;  // --inject of train
  StartRequest start;               // its ranks and hostfile are chosen for each attempt
  std::string hosts;                // a hostfile with spares, for mpirun; empty: none
  RetryPolicy::Limits retry;
  HeartbeatWatch::Limits watch;
  std::chrono::milliseconds replay_limit{600'000};  // for running a step again that was not finite; 0: it is not
  bool preflight = false;
  std::chrono::duration<double> burn{0};  // of the preflight
  bool echo = true;                       // the log on standard output
};

// UserError where another supervisor or run holds the directory. `signals` are heard from before anything is started.
RunReport supervise(const SuperviseRequest& request, const StopSignals& signals);

}  // namespace sextant
