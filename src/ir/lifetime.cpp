#include "ir/lifetime.h"

#include <algorithm>

namespace sextant {

std::vector<Lifetime> lifetimes(const Program& program) {
  std::vector<Lifetime> live(program.values.size());
  int at = 0;
  auto touch = [&](ValueId id) {
    Lifetime& l = live[static_cast<size_t>(id)];
    if (l.first < 0) l.first = at;
    l.last = at;
  };
  for (const Region& region : program.regions) {
    for (const Op& op : region.ops) {
      for (ValueId id : op.inputs) touch(id);
      for (ValueId id : op.outputs) touch(id);
      ++at;
    }
  }
  for (const Value& value : program.values) {
    Lifetime& l = live[static_cast<size_t>(value.id)];
    bool from_outside = is_persistent(value.kind) || value.kind == ValueKind::feed;
    if (from_outside) l = {0, std::max(0, at - 1)};
    if (value.kind == ValueKind::fetch && l.used()) l.last = std::max(0, at - 1);
  }
  return live;
}

}  // namespace sextant
