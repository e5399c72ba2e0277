// The ranks of a run: threads of this process, or one of them in this process and the others elsewhere. Each runs the
// same function with its own context. When one of them throws, the others are woken and end too, and what comes out is
// the cause, not its echoes, with the place where the others were left waiting.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "comm/rank_context.h"

namespace sextant {

struct Launch {
  Transport* process = nullptr;  // this process is one rank of several; null: all ranks are threads of this process
  int ranks_on_host = 1;         // with `process`
  int cores = 1;                 // this rank's share of them, with `process`
  // When the run has failed and a rank still does not come back, nothing can be cleaned up any more: this must end the
  // process, with the code of the failure that came first. Without it the rank is waited for.
  std::function<void(const std::string& why, ExitCode code)> end_process;

  bool leads() const { return !process || process->rank() == 0; }  // holds rank 0
};

struct RankTeam {
  int ranks = 1;
  std::chrono::milliseconds timeout{0};  // of every wait for another rank
};

// Exit code of the process when this error ends it.
ExitCode exit_code_of(const std::exception& error);

void run_ranks(const Launch& launch, const RankTeam& team, const std::function<void(const RankContext&)>& work);

}  // namespace sextant
