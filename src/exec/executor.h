// Executor: runs Programs on one kind of device. An arena holds the bytes, bind checks that every op has a kernel and
// puts addresses in place of offsets, run executes one unit of the schedule and allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/trace.h"
#include "comm/rank_context.h"
#include "exec/drawn_piece.h"
#include "exec/nvme_file.h"
#include "exec/step_checks.h"
#include "exec/tensor.h"
#include "ir/plan.h"
#include "ir/program.h"
#include "ir/walk.h"

namespace sextant {

// One contiguous piece of memory in each space, of a file in that of nvme. Fresh arenas are zero.
class Arena {
 public:
  virtual ~Arena() = default;
  virtual int64_t bytes() const = 0;                // of the device
  virtual int64_t host_bytes() const { return 0; }  // of the host
  virtual int64_t nvme_bytes() const { return 0; }  // of the file
};

// The values of a Program on one rank, to be read.
class StateView {
 public:
  virtual ~StateView() = default;
  virtual const Program& program() const = 0;
  virtual int rank() const = 0;
  // `offset` counts from the value's first byte.
  virtual void read(const Value& value, std::span<std::byte> destination, int64_t offset = 0) const = 0;
  // Corruption where a weight or an optimizer state has changed since its checksum was recorded: what has been read so
  // far is what ops left. Does nothing without checksums.
  virtual void verify_checksums() const {}
  // Whole values, one behind the other. For many small ones: a device is waited for once.
  virtual void read_all(std::span<const Value* const> values, std::span<std::byte> destination) const;
};

// One run of an op, when it has ended: what it made, to be read from the host. On the CPU these are the bytes that the
// ops behind it will read.
struct OpRun {
  const Op& op;
  Action action;
  std::span<const Tensor> outputs;  // as Op::outputs lists them
};

class OpObserver {
 public:
  virtual ~OpObserver() = default;
  virtual void after(const OpRun& run) = 0;
};

// A Program at its addresses.
class Bound : public StateView {
 public:
  // From now on every op is followed by a call of the observer, on the thread that calls run; null ends it. An op of
  // the comm lane is seen when the compute lane waits for it. Costs one look at a pointer where there is none.
  virtual void observe(OpObserver* observer) { observer_ = observer; }
  // Whether an observer is handed the outputs themselves, so that the ops behind read what it writes, or copies.
  virtual bool is_observed_in_place() const { return false; }

  // Runs the regions that the actions of a unit name (ir/program.h). With a trace, appends one event per op.
  virtual void run(std::span<const Action> unit, Trace* trace = nullptr) = 0;
  void run(const Action& action, Trace* trace = nullptr) { run(std::span(&action, 1), trace); }

  // Bytes of a value, from the host's side. `offset` counts from the value's first byte; values that several
  // microbatches hold at once are those of `microbatch`.
  virtual void write(const Value& value, std::span<const std::byte> source, int64_t offset = 0, int microbatch = 0) = 0;

  // Draws a piece of an f32 parameter, or of one half of it: bf16 values get the upper half, u16 values the low one.
  // f16 values get it rounded.
  virtual void draw(const Value& value, const DrawnPiece& piece);

  // A number as it stands after the actions run so far; collect waits for it. Each ticket is collected once, in order,
  // and not more than kFetchesUnderWay are open.
  static constexpr int kFetchesUnderWay = 8192;
  virtual int64_t fetch(const Value& scalar) = 0;
  virtual float collect(int64_t ticket) = 0;

  // Records the checksums of all weights and optimizer states as they are between two steps (exec/state_checksums.h).
  // From then on ops that write them record anew, and verify first: run throws Corruption before a step builds on a
  // value that has changed. Does nothing where has_checksums stays false: the executor takes none.
  virtual void record_checksums() {}
  virtual bool has_checksums() const { return false; }

  // Waits until every message of the actions run so far has arrived: before the update, and at the end of a schedule.
  virtual void settle() = 0;

  // Sets the checks of the ops that run from now on. A check that fails throws Corruption from run or settle. Only
  // checks that checks_gemms and checks_messages report may be requested.
  void set_checks(const StepChecks& checks) { checks_ = checks; }
  virtual bool checks_gemms() const { return false; }
  virtual bool checks_messages() const { return false; }

  // From now on each step of each action is appended to `steps`; null ends it. For tests.
  void record_steps(std::vector<WalkStep>* steps) { recorded_ = steps; }

 protected:
  void note(const WalkStep& step) const {
    if (recorded_) recorded_->push_back(step);
  }

  OpObserver* observer() const { return observer_; }
  const StepChecks& checks() const { return checks_; }

 private:
  StepChecks checks_;
  std::vector<WalkStep>* recorded_ = nullptr;
  OpObserver* observer_ = nullptr;
};

// Measured rates of a device: of a large GEMM and of a large copy.
struct DeviceRates {
  double flops_per_s = 0;
  double bytes_per_s = 0;  // read and written
};

class Executor {
 public:
  virtual ~Executor() = default;
  virtual Target target() const = 0;
  // `host_bytes` are those of the host's space, `file` is that of the nvme space, for Programs that keep something
  // there. UserError where the executor does not use files.
  virtual std::unique_ptr<Arena> allocate(int64_t bytes, int64_t host_bytes = 0, const FileSpace& file = {}) = 0;
  // UserError that names every op without a kernel. The Program and the arena must outlive the result.
  virtual std::unique_ptr<Bound> bind(const Program& program, Arena& arena) = 0;
  // Steps that may be issued before the numbers of an earlier one are collected: 0 where run returns when the work is
  // done.
  virtual int steps_ahead() const { return 0; }
  // Marks the moment when all that was issued so far is done. `seconds_between` waits for it; the last kMarksKept can
  // be asked for.
  static constexpr int kMarksKept = 8;
  virtual int64_t mark_time();
  virtual double seconds_between(int64_t earlier, int64_t later) const;
  // The largest arena there is room for, where the executor knows.
  virtual std::optional<Bytes> room() const { return std::nullopt; }
  // The same of the host's space; nothing where both are one memory, or the executor does not know.
  virtual std::optional<Bytes> host_room() const { return std::nullopt; }
  // Measured now, in a moment; nothing where the executor has no way to.
  virtual std::optional<DeviceRates> measure_rates() { return std::nullopt; }
  // Bytes that ops have sent to other ranks so far, by the axes of the group: "dp", "dp,cp", "pp".
  virtual std::map<std::string, int64_t> bytes_sent() const = 0;
};

// Runs every action of the schedule in order.
void run_schedule(Bound& bound, Trace* trace = nullptr);

// Scalars and small arrays by type.
template <class T>
void write_value(Bound& bound, const Value& value, const T& x) {
  bound.write(value, std::as_bytes(std::span<const T>(&x, 1)));
}
template <class T>
T read_value(const Bound& bound, const Value& value) {
  T x{};
  bound.read(value, std::as_writable_bytes(std::span<T>(&x, 1)));
  return x;
}

}  // namespace sextant
