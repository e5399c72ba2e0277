#include "passes/join_lanes.h"

#include <deque>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "ir/lane.h"

namespace sextant {

namespace {

// The ops of the comm lane, by what they make.
std::map<ValueId, int32_t> made_on_comm_lane(const Program& program) {
  std::map<ValueId, int32_t> made;
  int32_t number = 0;
  for (const Region& region : program.regions)
    for (const Op& op : region.ops) {
      if (on_comm_lane(op))
        for (ValueId id : op.outputs) made[id] = number;
      ++number;
    }
  return made;
}

// Whether op `number` runs for the last microbatch only; `end` is the number behind the region's last op.
bool runs_once(const Region& region, int32_t number, int32_t end) {
  return last_microbatch_only(region.ops[region.ops.size() - static_cast<size_t>(end - number)]);
}

// Copies to the host whose operands' bytes the device wants back: those of a block are waited for when the second block
// behind it begins.
class LeavingCopies {
 public:
  explicit LeavingCopies(const Program& program) : program_(program) {}

  void started(const Op& op, int32_t number) {
    if (copies_to_host(program_, op) && op.phase == Phase::forward && !once_per_step(op))
      leaving_.push_back({number, turns_});
  }

  // The copy that an op of the compute lane must wait for; the lane keeps its order, so the latest is enough.
  std::optional<int32_t> waited_by(const Op& op) {
    if (block_ && *block_ != op.block) ++turns_;
    block_ = op.block;
    std::optional<int32_t> latest;
    while (!leaving_.empty() && leaving_.front().turn + 2 <= turns_) {
      latest = leaving_.front().number;
      leaving_.pop_front();
    }
    return latest;
  }

 private:
  struct Copy {
    int32_t number;
    int turn;  // of blocks, when it started
  };
  const Program& program_;
  std::deque<Copy> leaving_;
  std::optional<int> block_;
  int turns_ = 0;
};

// One region; `number` is that of its first op, `open` are ops of the comm lane that may still run when the regions
// before it have ended. Returns those of its own.
std::set<int32_t> join_region(const Program& program, Region& region, int32_t number,
                              const std::map<ValueId, int32_t>& made, const std::set<int32_t>& open) {
  std::set<int32_t> running;  // started here and not waited for
  std::set<int32_t> waited;   // of other regions
  Op* first = nullptr;        // of the compute lane
  LeavingCopies leaving(program);
  for (Op& op : region.ops) {
    op.waits.clear();
    if (on_comm_lane(op)) {
      running.insert(number);
      leaving.started(op, number);
    } else {
      if (!first) first = &op;
      if (std::optional<int32_t> copy = leaving.waited_by(op); copy && running.contains(*copy)) {
        op.waits.push_back(*copy);
        running.erase(running.begin(), running.upper_bound(*copy));
      }
      for (ValueId id : op.inputs) {
        auto at = made.find(id);
        if (at == made.end()) continue;
        bool here = at->second >= number - static_cast<int32_t>(&op - region.ops.data()) && at->second < number;
        // Comm ops that their own region has waited for ended long ago: a wait for their latest run would be a wait for
        // another microbatch.
        if (!here && !open.contains(at->second)) continue;
        if (here ? !running.contains(at->second) : !waited.insert(at->second).second) continue;
        op.waits.push_back(at->second);
        // The lane keeps its order: what started before has ended too.
        if (here) running.erase(running.begin(), running.upper_bound(at->second));
      }
    }
    ++number;
  }
  // Comm ops that may still run must end before the region makes their operands again.
  if (first && region.kind != RegionKind::update)
    for (int32_t left : running)
      if (!runs_once(region, left, number)) first->waits.push_back(left);
  return running;
}

// Whoever reads a gradient there finds all of them reduced, and whoever comes behind it finds the lane free.
void join_update(const Program& program, Region& region, int32_t number, const std::map<ValueId, int32_t>& made,
                 const std::set<int32_t>& open) {
  std::set<int32_t> left = join_region(program, region, number, made, {});
  Op &first = region.ops.front(), &last = region.ops.back();
  BUG_IF(!left.empty() && on_comm_lane(last), "{} is on the comm lane, and nothing waits for it", last.path);
  last.waits.insert(last.waits.end(), left.begin(), left.end());
  first.waits.insert(first.waits.begin(), open.begin(), open.end());
}

}  // namespace

void join_lanes(Program& program) {
  std::map<ValueId, int32_t> made = made_on_comm_lane(program);
  std::set<int32_t> open;
  int32_t number = 0;
  for (Region& region : program.regions) {
    if (region.kind == RegionKind::update && !region.ops.empty()) {
      join_update(program, region, number, made, open);
    } else {
      open.merge(join_region(program, region, number, made, open));
    }
    number += static_cast<int32_t>(region.ops.size());
  }
}

}  // namespace sextant
