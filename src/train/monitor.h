// Monitor: sees every step of a run and returns what is to follow. One file each in monitors/; monitors.def lists them
// in the order in which they see a step. docs/extend/monitor.md shows how one is added.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/exit_code.h"
#include "events/run_event.h"
#include "train/metrics.h"
#include "train/save/run_checkpoint.h"
#include "train/step_policy.h"

namespace sextant {

struct SayLine {
  std::string line;  // for the user; only the leader prints
};
struct Save {};         // a checkpoint; once all monitors have seen the step
struct SaveLocally {};  // a local checkpoint, likewise
struct Rewind {
  int64_t step = 0;  // the run goes back to a checkpoint of an earlier step, and leaves out the samples that led to it
};
struct Stop {
  ExitCode outcome = ExitCode::stopped;  // of the first Stop of a step
};
// An event is recorded by the leader.
using RunAction = std::variant<SayLine, RunEvent, Save, SaveLocally, Rewind, Stop>;
using RunActions = std::vector<RunAction>;

// Every rank has its own, and all see the same numbers: they must decide alike to save, rewind and stop.
class Monitor {
 public:
  virtual ~Monitor() = default;

  // The run is at this state: it begins, or has been rewound.
  virtual void restore(const RunState&) {}
  // Adds what a checkpoint keeps of the monitor.
  virtual void keep(RunState&) const {}

  // Between two steps, by all ranks together, before `step` is issued.
  virtual RunActions before(int64_t) { return {}; }
  // How `step` is to be made: at which rate, and above which gradient norm its update is skipped.
  virtual void adjust(int64_t, StepPolicy&) const {}
  // Whether the weights after `step` are read: no other step is under way then.
  virtual bool reads_weights_after(int64_t) const { return false; }

  // Adds numbers to a finished step.
  virtual void measure(StepMetrics&) {}
  // Sees a finished step, with the numbers of all monitors.
  virtual RunActions after(const StepMetrics&) { return {}; }
};

struct RankServices;
// Null: the run has no use for it.
using MakeMonitor = std::function<std::unique_ptr<Monitor>(RankServices& rank)>;

}  // namespace sextant
