// The run on one rank, from its first message to its last: the loop over steps with all that watches it.
#pragma once

#include <filesystem>
#include <vector>

#include "comm/ranks.h"
#include "exec/executor.h"
#include "models/model.h"
#include "run/programs.h"
#include "run/run_identity.h"
#include "train/data/dataset.h"
#include "train/faults/fault_injector.h"
#include "train/health/stop.h"
#include "train/progress.h"
#include "train/save/resume.h"
#include "train/save/run_lock.h"
#include "train/train.h"

namespace sextant {

// Objects that all ranks of a process share.
struct RankRunParts {
  const RunConfig& run;
  const std::filesystem::path& out;
  const RunLock& lock;  // of it; the leader's process has it
  const ModelSpec& spec;
  const DropoutRates& dropout;
  const Dataset& dataset;
  const RunPrograms& programs;
  const RunIdentity& identity;
  const ResumePoint& resume;
  const std::filesystem::path& local_folder;  // of local checkpoints; empty: none
  const std::vector<Fault>& faults;
  Lines lines;
  int processes_on_host;
  const TrainView& view;
};

TrainResult run_rank(const RankRunParts& parts, Executor& executor, const RankContext& context,
                     const StopRequest& stop);

}  // namespace sextant
