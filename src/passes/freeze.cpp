#include "passes/freeze.h"

namespace sextant {

void freeze(Program& program) {
  std::vector<bool> used(program.values.size(), false);
  for (const Region& region : program.regions)
    for (const Op& op : region.ops)
      for (const auto* ids : {&op.inputs, &op.outputs})
        for (ValueId id : *ids) used[static_cast<size_t>(id)] = true;
  std::vector<ValueId> renumbered(program.values.size(), kNoValue);
  std::vector<Value> kept;
  for (Value& value : program.values) {
    if (!used[static_cast<size_t>(value.id)]) continue;
    renumbered[static_cast<size_t>(value.id)] = static_cast<ValueId>(kept.size());
    value.id = static_cast<ValueId>(kept.size());
    kept.push_back(std::move(value));
  }
  program.values = std::move(kept);
  auto renumber = [&](ValueId& id) {
    if (id != kNoValue) id = renumbered[static_cast<size_t>(id)];
  };
  for (Value& value : program.values) renumber(value.of);
  for (Region& region : program.regions)
    for (Op& op : region.ops) {
      for (auto* ids : {&op.inputs, &op.outputs})
        for (ValueId& id : *ids) renumber(id);
      renumber(op.parameter);
    }
}

}  // namespace sextant
