// sweep: trains every run of a grid as a process of its own, several at a time, each in its directory; what is done
// already is not done again. With successive halving only the best go on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/exit_code.h"
#include "sweep/score.h"
#include "sweep/sweep_grid.h"

namespace sextant {

struct SweepRequest {
  std::string binary;  // this program
  std::string config;
  std::vector<SweepRun> runs;
  std::filesystem::path out;
  int64_t jobs = 1;         // at a time
  int64_t threads = 0;      // of each, unless the runs say; 0: as train chooses
  int64_t keep_one_in = 1;  // successive halving; 1: none
  std::function<void(const std::string& line)> say;
};

enum class SweepState : uint8_t {
#define SWEEP_STATE(name) name,
#include "sweep/sweep_states.def"
#undef SWEEP_STATE
};
std::string_view name_of(SweepState state);

struct SweptRun {
  SweepRun run;
  std::filesystem::path out;
  SweepState state = SweepState::waiting;
  int exit_code = 0;  // of the last process
  RunScore score;
};

struct SweepResult {
  std::vector<SweptRun> runs;  // the best first
  LossBasis ranked_by;         // nothing: they have no rank
  ExitCode outcome = ExitCode::finished;
};

// SIGINT and the like ask all runs to save and stop; the same command goes on.
SweepResult sweep(const SweepRequest& request);

}  // namespace sextant
