// LocalCheckpoints: a rank's part of the run's local checkpoints. Every checkpoint.local_every steps it copies its
// weights and optimizer state to its host's folder, and to that of the rank that keeps a second copy for it; what is
// there already stays whole until the new copy is. Steps wait for it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "comm/host_group.h"
#include "config/run_config.h"
#include "exec/executor.h"
#include "train/save/local_copy.h"
#include "train/save/run_checkpoint.h"

namespace sextant {

class LocalCheckpoints {
 public:
  struct Parts {
    const RunConfig& run;
    std::filesystem::path folder;  // empty: the run keeps none
    const StateView& values;
    HostGroup& group;
    Transport* transport;  // null for the only rank
    RankStatus& rank_status;
  };
  explicit LocalCheckpoints(Parts parts) : parts_(std::move(parts)) {}

  // Called by all ranks before the first step, when each has what it needs of the copy the run resumes from: that of
  // `kept_step`, or none (-1). All others go. Reserves the space: RunError where there is not enough. Again after the
  // run has gone back to an earlier step.
  void begin(int64_t kept_step);

  bool is_due(int64_t step) const { return !parts_.folder.empty() && step % parts_.run.checkpoint.local_every == 0; }
  // Called by all ranks. What went wrong on any of them, the same on every rank; empty when all copies stand.
  std::string save(const RunState& state);

  void discard();  // all copies, by all ranks: the run is over, or must not go on from them
  void lose_held_by(int first, int count) { discard_copies_held_by(parts_.folder, first, count); }  // a drill

 private:
  // The two slots of one rank's copies here.
  struct Kept {
    int rank = -1;
    int64_t bytes = 0;
    std::vector<LocalSlot> slots = {};
    int next = 0;  // the one that is written next

    LocalSlot& slot() { return slots[static_cast<size_t>(next)]; }
  };
  Kept reserve(int rank, int64_t bytes);
  // Hashes of the states that both directions have sent.
  struct Exchanged {
    std::string own_hash;
    std::vector<std::string> held_hashes;
  };
  Exchanged exchange_states(std::string& failure);
  // The descriptions of the states that are kept here, each as its rank sent it.
  std::vector<std::string> exchange_texts(const std::string& own);

  Parts parts_;
  uint64_t layout_ = 0;
  int holder_ = -1;  // who keeps a copy of this rank's state
  Kept own_;
  std::vector<Kept> held_;             // for other ranks
  int64_t previous_ = -1, last_ = -1;  // steps saved by this process
};

}  // namespace sextant
