#include "passes/join_lanes.h"

#include <map>
#include <set>

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

// One region. `number` is that of its first op.
void join_region(Region& region, int32_t number, const std::map<ValueId, int32_t>& made) {
  std::set<int32_t> waited;   // for their latest run
  std::set<int32_t> running;  // started here in every microbatch, and not waited for here
  Op* first = nullptr;        // of the compute lane
  for (Op& op : region.ops) {
    op.waits.clear();
    if (on_comm_lane(op)) {
      waited.erase(number);
      if (!last_microbatch_only(op)) running.insert(number);
    } else {
      if (!first) first = &op;
      for (ValueId id : op.inputs)
        if (auto at = made.find(id); at != made.end() && waited.insert(at->second).second) {
          op.waits.push_back(at->second);
          running.erase(at->second);
        }
    }
    ++number;
  }
  // What still runs when the region ends must have ended before the region makes its operands again.
  if (first) first->waits.insert(first->waits.end(), running.begin(), running.end());
}

}  // namespace

void join_lanes(Program& program) {
  std::map<ValueId, int32_t> made = made_on_comm_lane(program);
  std::set<int32_t> all;
  for (const auto& [value, op] : made) all.insert(op);
  int32_t number = 0;
  for (Region& region : program.regions) {
    if (region.kind == RegionKind::update && !region.ops.empty()) {
      // Whoever reads a gradient there finds all of them reduced.
      for (Op& op : region.ops) op.waits.clear();
      region.ops.front().waits.assign(all.begin(), all.end());
    } else {
      join_region(region, number, made);
    }
    number += static_cast<int32_t>(region.ops.size());
  }
}

}  // namespace sextant
