// Saver: writes a run's checkpoints, in the background where the config says so: a copy of the state is taken, and
// training goes on while all ranks write their parts of it. One checkpoint at a time.
//
// A checkpoint with a NaN or an infinity in it is not written. A periodic one that cannot be written is tried once more
// with older ones pruned first, as far as checkpoint.keep allows; then the run goes on, as long as an older one stands.
// Older ones are pruned only when a step has been made from what the newer one holds and its loss was finite, and the
// last of which that is known never is (retention.h).
#pragma once

#include <atomic>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ckpt/checkpoints.h"
#include "config/run_config.h"
#include "train/faults/fault_injector.h"
#include "train/save/run_checkpoint.h"
#include "train/save/snapshot.h"

namespace sextant {

class Saver {
 public:
  struct Parts {
    const RunConfig& run;
    const std::filesystem::path& out;
    const ModelSpec& spec;
    const DropoutRates& dropout;
    const Tokenizer* tokenizer;
    const ModelFiles& files;     // may be filled until the first save
    const ExpertFiles& experts;  // likewise
    const StateView& values;
    Transport* transport;  // null for the only rank
    RankStatus& rank_status;
    const FaultInjector& faults;
  };
  explicit Saver(const Parts& parts);
  ~Saver();
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  enum class Occasion { periodic, last };

  // Called by all ranks. The last one must succeed: RunError when it cannot be written, with ExitCode::non_finite when
  // it must not be.
  void save(const RunState& state, Occasion occasion);
  void check();    // throws what went wrong in the background and ends the run, if anything has
  void confirm();  // a step from here was finite: what checkpoint.keep does not ask for may go
  void finish();   // until the last one is on disk

  // The newest that stands, or what the run goes on from; step -1 before the first.
  Checkpoint newest();
  void resumed_from(const Checkpoint& checkpoint);
  void rewound_to(const Checkpoint& checkpoint);  // from which finite steps were made; later ones are gone
  // The newest from which a finite step was made; step -1 when there is none.
  Checkpoint newest_confirmed();
  // Notes for the user since the last call.
  std::vector<std::string> take_notes();

 private:
  struct Job {
    std::filesystem::path place;
    RunState state;
    Occasion occasion;
    FileDType dtype = FileDType::f32;
  };
  FileDType dtype_that_holds(const StateView& values, std::string_view where);
  void write(const Job& job, const StateView& values);
  std::string write_or_say_why(const Job& job, const StateView& values);
  void note(std::string line);
  void prune(const CheckpointSection& keep);

  Parts parts_;
  HostGroup group_;                     // its own conversation, beside that of the steps
  std::unique_ptr<Snapshot> snapshot_;  // null: saving waits
  std::thread writing_;
  std::thread pruning_;
  std::exception_ptr error_;
  std::atomic<bool> failed_{false};
  std::atomic<bool> unconfirmed_{true};  // more may be there than are to be kept
  std::mutex mutex_;                     // of what follows
  std::vector<std::string> notes_;
  Checkpoint newest_{.step = -1, .path = {}}, confirmed_{.step = -1, .path = {}};
};

// Whether a run saves in the background: it is asked to, and it saves more than once.
bool saves_in_background(const RunConfig& run);

}  // namespace sextant
