// One pipeline rank on its way through a step: its priced ops, where it stands, and what its lanes are doing. It stops
// where it needs something of another rank that has not been simulated yet.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/rng.h"
#include "exec/sim/simulate.h"
#include "ir/walk.h"

namespace sextant {

// Messages between pipeline ranks: the arrival time of each message, and the ranks that wait at a common sum.
class StageMessages {
 public:
  struct Key {
    int from, to, microbatch;
    int64_t tag;
    bool operator==(const Key&) const = default;
  };

  void post(const Key& key, double arrives, double transfer) { messages_[key] = {arrives, transfer}; }
  struct InFlightMessage {
    double arrives, transfer;
  };
  std::optional<InFlightMessage> find(const Key& key) const;

  // Every rank of `of` ranks comes to the sum called `name` once; the last one's time counts.
  void arrive(const std::string& name, double at);
  std::optional<double> all_there(const std::string& name, size_t of) const;

 private:
  struct Hash {
    size_t operator()(const Key& key) const;
  };
  std::unordered_map<Key, InFlightMessage, Hash> messages_;
  struct StageBarrier {
    size_t present = 0;
    double last = 0;
  };
  std::map<std::string, StageBarrier> barriers_;
};

struct PricedOp {
  const Op* op = nullptr;
  OpPrice price;
  bool on_lane = false;    // runs beside compute
  double waited_s = 0;     // of a collective on the compute lane: what its profile does not hide
  bool held_back = false;  // a reduction of gradients that its profile does not overlap: begun before the update
  size_t meets = 0;        // how many pipeline ranks take part in a sum
  int peer = -1;           // of a message between stages
  int64_t tag = 0;
};

// The ops of a region in order, without meets, which take the whole Program to find.
std::vector<PricedOp> price_region(const Program& program, const Region& region, Pricer& pricer);

// A unit of the schedule by itself, from its start: everything that it receives is there, no message of another is
// under way, and the host is ahead. Whatever comes before it, a rank takes no less for it.
struct UnitAlone {
  double seconds = 0;
  struct StageMessage {
    Collective kind = Collective::send;  // or receive
    int part = 0;                        // of the unit
    double at = 0;                       // when the rank comes to it
    double arrives = 0;                  // of a send
    double lane_busy = 0;                // for how long messages still travel beside the rank then
  };
  std::vector<StageMessage> messages;  // in order
};

class RankWalk {
 public:
  RankWalk(const Program& program, Pricer& pricer, const SimOptions& options);

  // Each block begins as the unit does, so that what more blocks take adds up; not in a pair, where two regions are in
  // different blocks at a time. Sums between stages are left out. Ends whatever the walk was in.
  UnitAlone alone(std::span<const Action> unit);

  // Goes on as far as it can; true when it has moved.
  bool advance(StageMessages& messages);
  bool done() const { return action_ == program_.schedule.size(); }

  double now() const { return now_; }
  void finish(double step_end);  // idles until then
  const RankTime& time() const { return time_; }
  Trace& trace() { return trace_; }

  // Each step that is taken is appended to `steps`. For tests.
  void record_steps(std::vector<WalkStep>* steps) { recorded_ = steps; }

 private:
  void forget();
  bool take(const WalkStep& step, const Action& action, StageMessages& messages);
  void price_all(Pricer& pricer);
  bool run_op(const PricedOp& op, int microbatch, StageMessages& messages);
  bool run_message(const PricedOp& op, int microbatch, StageMessages& messages);
  void run_compute(const PricedOp& op);
  void run_held_back(StageMessages& messages);
  double beside_messages(double seconds);  // what so much compute takes from now on
  void post_on_lane(const PricedOp& op, int microbatch);
  double beside_lane(const OpPrice& message, double seconds) const;  // what so long a message takes from now on
  void wait_until(double at, double RankTime::*part);
  void wait_for_axes(double at, const std::string& axes);
  double noisy(double seconds);
  void record(const PricedOp& op, double start, double end, const char* lane, int microbatch);

  // Events of a lane that are one pass, for KeepTrace::passes.
  struct Pass {
    Action action;
    double start = 0, end = 0, busy = 0;
    std::vector<Event> parts;  // by axes; each begins at 0
  };
  void add_to_pass(Pass& pass, const PricedOp& op, double start, double end, const char* lane, int microbatch);
  void close_pass(Pass& pass);

  const Program& program_;
  const SimOptions options_;
  const SoftwareProfile profile_;
  const Efficiencies efficiency_;
  Walk walk_;
  std::vector<PricedOp> ops_;        // by number
  std::vector<size_t> held_back_;    // by number: reductions that wait for the end of the last backward
  std::vector<double> lane_done_;    // by number: when the op's message on the comm lane has arrived
  size_t action_ = 0, step_ = 0;     // the first action of the unit, and the step in it
  const Action* current_ = nullptr;  // the action that the step belongs to
  std::vector<WalkStep>* recorded_ = nullptr;
  double now_ = 0, lane_free_ = 0, host_ = 0;
  double near_busy_ = 0, far_busy_ = 0;  // until when the comm lane holds the links inside and between nodes
  struct LaneMessage {
    double start, end;
    double compute_speed;  // beside it
  };
  std::vector<LaneMessage> on_lane_;  // in order; those before the first have ended
  size_t first_on_lane_ = 0;
  bool updating_ = false;
  const PricedOp* arrived_ = nullptr;  // the sum between stages at which it waits
  RankTime time_;
  Random random_;
  Trace trace_;
  Pass computing_, sending_;  // that go on
};

}  // namespace sextant
