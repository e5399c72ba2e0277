#include "ir/host_access.h"

#include <algorithm>

namespace sextant {

namespace {

// The first op of each value that has it among these operands, as the region that runs it.
std::vector<const Region*> first_regions(const Program& program, std::vector<ValueId> Op::*operands) {
  std::vector<const Region*> first(program.values.size(), nullptr);
  for (const Region& region : program.regions)
    for (const Op& op : region.ops)
      for (ValueId id : op.*operands)
        if (const Region*& at = first[static_cast<size_t>(id)]; !at) at = &region;
  return first;
}

template <class Wanted>
std::vector<HostAccess> accesses(const Program& program, std::vector<ValueId> Op::*operands, const Wanted& wanted) {
  std::vector<const Region*> first = first_regions(program, operands);
  std::vector<HostAccess> found;
  for (const Value& value : program.values)
    if (const Region* region = first[static_cast<size_t>(value.id)]; region && wanted(value))
      found.push_back({value.id, region->kind, region->chunk});
  return found;
}

}  // namespace

bool is_of_step(const Value& feed) {
  return feed.shape.rank() == 0;
}

std::vector<HostAccess> microbatch_feeds(const Program& program) {
  return accesses(program, &Op::inputs,
                  [](const Value& value) { return value.kind == ValueKind::feed && !is_of_step(value); });
}

std::vector<HostAccess> fetches(const Program& program) {
  return accesses(program, &Op::outputs, [](const Value& value) { return value.kind == ValueKind::fetch; });
}

}  // namespace sextant
