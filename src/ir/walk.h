// The order in which a rank does the work of its Program. The CPU, the GPU and the simulator take their steps from
// here, and from nowhere else: what runs, on which lane, and who waits for whom.
#pragma once

#include <cstdint>
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
  int32_t op = -1;  // its number, counted over all regions
  bool operator==(const WalkStep&) const = default;
};

class Walk {
 public:
  explicit Walk(const Program& program);  // which must outlive it

  // The region that an action runs; nullopt where the Program has none (a stage without weight gradients to defer).
  std::optional<size_t> region_of(const Action& action) const;
  // The steps of an action, in order. Empty where it runs no region.
  std::span<const WalkStep> steps(const Action& action) const;

  size_t op_count() const { return ops_.size(); }
  const Op& op(int32_t number) const { return *ops_[static_cast<size_t>(number)]; }
  int32_t first_op(size_t region) const { return regions_[region].first_op; }

 private:
  struct RegionSteps {
    int32_t first_op = 0;
    int last_microbatch = 0;
    std::vector<WalkStep> every, last;  // for the last microbatch of the region, and for the others
  };
  std::vector<WalkStep> steps_of(const Region& region, int32_t first_op, RunsFor which) const;

  const Program& program_;
  std::vector<const Op*> ops_;
  std::vector<RegionSteps> regions_;
};

}  // namespace sextant
