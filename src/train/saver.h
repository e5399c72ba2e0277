// Saver: writes a run's checkpoints, in the background where the config says so: a copy of the state is taken, and training
// goes on while all ranks write their parts of it. One checkpoint at a time; what goes wrong comes out of the next call.
#pragma once

#include <atomic>
#include <exception>
#include <filesystem>
#include <memory>
#include <thread>

#include "config/run_config.h"
#include "train/run_checkpoint.h"
#include "train/snapshot.h"

namespace sextant {

class Saver {
 public:
  struct Parts {
    const RunConfig& run;
    const std::filesystem::path& out;
    const ModelSpec& spec;
    const Tokenizer* tokenizer;
    const StateView& values;
    Transport* transport;  // null for the only rank
    Whereabouts& whereabouts;
  };
  explicit Saver(const Parts& parts);
  ~Saver();
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  // Called by all ranks. Returns the place where the checkpoint will be.
  std::filesystem::path save(const RunState& state);
  void check();   // throws what went wrong in the background, if anything has
  void finish();  // until the last one is on disk

 private:
  void write(const std::filesystem::path& place, const RunState& state, const StateView& values);

  Parts parts_;
  Crew crew_;  // its own conversation, beside that of the steps
  std::unique_ptr<Snapshot> snapshot_;  // null: saving waits
  std::thread writing_;
  std::exception_ptr error_;
  std::atomic<bool> failed_{false};
};

// Whether a run saves in the background: it is asked to, and it saves more than once.
bool saves_in_background(const RunConfig& run);

}  // namespace sextant
