// The order in which a rank does the work of its Program. The CPU, the GPU and the simulator take their steps from
// here, and from nowhere else: what runs, on which lane, and who waits for whom.
//
// The actions of a unit run one after the other, but those of a pair, a forward beside a backward, take turns: each
// goes on until it would wait for the comm lane, and then the other does. So a message of one travels while the other
// computes, and each keeps its own order.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "ir/program.h"

namespace sextant {

struct WalkStep {
  enum class Kind : uint8_t {
    settle,   // every message that this rank has sent in the step must have gone (op is -1)
    reclaim,  // what op `op` sent from this microbatch's slot must have gone: its operand is about to be made again
    wait,     // the compute lane waits until the latest run of op `op`, which is on the comm lane, has ended
    start,    // op `op` starts on its lane
  };
  Kind kind = Kind::start;
  int32_t op = -1;   // its number, counted over all regions
  int32_t part = 0;  // the action of the unit that it belongs to
  bool operator==(const WalkStep&) const = default;
};

class Walk {
 public:
  explicit Walk(const Program& program);  // which must outlive it

  // The region that an action runs; nullopt where the Program has none (a stage without weight gradients to defer).
  std::optional<size_t> region_of(const Action& action) const;
  // The steps of a unit of the schedule, in order. Empty where it runs no region.
  std::span<const WalkStep> steps(std::span<const Action> unit) const;
  // Of an action on its own.
  std::span<const WalkStep> steps(const Action& action) const;

  // The steps of each kind of pair in the schedule, with what only runs for a first or a last microbatch.
  std::vector<std::vector<WalkStep>> pairs() const;

  size_t op_count() const { return ops_.size(); }
  const Op& op(int32_t number) const { return *ops_[static_cast<size_t>(number)]; }
  int32_t first_op(size_t region) const { return regions_[region].first_op; }

 private:
  // Where a microbatch stands among those of its region in a step: some ops run for the first or the last only.
  struct Turn {
    bool first = false, last = false;
    auto operator<=>(const Turn&) const = default;
  };
  struct RegionSteps {
    int32_t first_op = 0;
    int first_microbatch = 0, last_microbatch = 0;
    std::map<Turn, std::vector<WalkStep>> steps;
    Turn turn_of(int microbatch) const { return {microbatch == first_microbatch, microbatch == last_microbatch}; }
  };
  // Of each part of a unit: its region and the microbatch's turn there; -1 where there is none.
  struct PartKey {
    int32_t region = -1;
    Turn turn = {};
    auto operator<=>(const PartKey&) const = default;
  };
  using UnitKey = std::array<PartKey, kMostParts>;

  std::vector<WalkStep> steps_of(const Region& region, int32_t first_op, Turn turn) const;
  UnitKey key_of(std::span<const Action> unit) const;
  enum class Order : uint8_t { parts_in_order, parts_take_turns };
  std::vector<WalkStep> join(const UnitKey& key, Order order) const;

  const Program& program_;
  std::vector<const Op*> ops_;
  std::vector<RegionSteps> regions_;
  std::map<UnitKey, std::vector<WalkStep>> units_;  // those of more than one action
};

}  // namespace sextant
