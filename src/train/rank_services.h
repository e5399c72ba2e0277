// RankServices: what the run on one rank consists of, from its first message to its last. Its start, its loop over
// steps, its monitors, a rewind and its end all work on these.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "ckpt/model_files.h"
#include "comm/host_group.h"
#include "exec/executor.h"
#include "models/expert_files.h"
#include "train/faults/fault_injector.h"
#include "train/health/non_finite_streak.h"
#include "train/health/replica_check.h"
#include "train/monitor.h"
#include "train/rank_position.h"
#include "train/rank_run.h"
#include "train/run_output.h"
#include "train/save/local_checkpoints.h"
#include "train/save/run_checkpoint.h"
#include "train/save/save_log.h"
#include "train/save/saver.h"
#include "train/step_tracer.h"
#include "train/trainer.h"

namespace sextant {

inline constexpr int64_t kStragglerWindow = 10;  // steps

// The rank that was last named as slow.
struct SlowRank {
  int64_t rank = -1, step = 0;  // at this step

  // Whether a report at `at` would repeat it.
  bool is_named(int64_t other, int64_t at) const { return other == rank && step + 2 * kStragglerWindow >= at; }
};

struct RankServices {
  RankServices(const RankRunParts& parts, Executor& executor, HostGroup& group, RankPosition& position,
               Transport* transport);

  // After which it stops this time.
  int64_t last_step() const {
    return parts.view.until > 0 ? std::min(parts.view.until, run.train.steps) : run.train.steps;
  }
  int64_t batch_tokens() const { return run.batch.sequences * run.batch.seq; }
  void record_checksums();  // of weights and states that have been read or drawn; steps go on from there
  // Carries out what does not wait for other monitors.
  void report(const RunActions& actions);
  // Writes a checkpoint of the state, unless a number of the last step is not finite.
  void save(Saver::Occasion occasion);

  const RankRunParts& parts;
  const RunConfig& run;
  Executor& executor;
  HostGroup& group;
  RankPosition& position;
  Transport* transport;  // null for the only rank

  Trainer trainer;
  LocalCheckpoints local;
  FaultInjector faults;
  ModelFiles files;  // of the directory that the weights came from, as the next
  ExpertFiles experts = ExpertFiles::as_listed;
  Saver saver;
  SaveLog save_log;
  ReplicaCheck replicas;
  NonFiniteStreak streak;
  StepTracer tracer;
  RunOutput output;

  RunState state;                          // of the step that was issued last
  SlowRank slow_rank;                      // the leader's
  std::vector<int64_t> arenas;             // bytes, of all ranks
  std::optional<double> peak_flops_per_s;  // of all devices; nothing where it is not known
  TrainResult result;
  std::vector<std::unique_ptr<Monitor>> monitors;
};

}  // namespace sextant
