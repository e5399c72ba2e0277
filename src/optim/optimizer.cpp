#include "optim/optimizer.h"

#include "ir/lane.h"

namespace sextant {

namespace {

constexpr const OptimizerDef* kOptimizers[] = {
#define OPTIMIZER(name) &optimizers::name,
#include "optim/optimizers.def"
#undef OPTIMIZER
};

}  // namespace

std::span<const OptimizerDef* const> all_optimizers() {
  return kOptimizers;
}

const OptimizerDef* find_optimizer(std::string_view name) {
  for (const OptimizerDef* def : kOptimizers)
    if (def->name == name) return def;
  return nullptr;
}

OptimizerSettings with_defaults(const OptimizerDef& def, const OptimizerSettings& given) {
  OptimizerSettings settings = def.defaults;
  for_each_setting([&](std::string_view, auto member) {
    if (settings.*member && given.*member) settings.*member = given.*member;
  });
  return settings;
}

std::vector<std::string_view> settings_of(const OptimizerDef& def) {
  std::vector<std::string_view> names;
  for_each_setting([&](std::string_view name, auto member) {
    if (def.defaults.*member) names.push_back(name);
  });
  return names;
}

OptimizerSettings Optimizer::resolved() const {
  return with_defaults(*def, settings);
}

GlobalShape OptimizerState::shape_for(const OptimizedWeight& weight) const {
  if (extent == Extent::rows) return {weight.shape[0]};
  if (extent == Extent::columns) return {static_cast<int64_t>(weight.packed_rows.size()), weight.shape[1]};
  return weight.shape;
}

std::map<ValueId, OptimizedWeight> optimized_weights(const Graph& graph) {
  std::map<ValueId, OptimizedWeight> weights;
  for (const Value& value : graph.values) {
    if (value.kind != ValueKind::parameter || !value.is_trained()) continue;
    std::vector<int64_t> packed = value.packed_rows;
    if (packed.empty()) packed.push_back(value.shape.rank() > 0 ? value.shape[0] : 1);
    weights.emplace(value.id, OptimizedWeight{.shape = value.shape, .packed_rows = std::move(packed)});
  }
  // Multi-token prediction reads embedding and head in a block of its own too; what is made of a weight once a step may
  // stand in front of the block that reads it.
  for (const Op& op : graph.ops)
    for (ValueId id : op.inputs)
      if (auto at = weights.find(id); at != weights.end() && op.block < 0 && !once_per_step(op))
        at->second.in_block = false;
  return weights;
}

}  // namespace sextant
