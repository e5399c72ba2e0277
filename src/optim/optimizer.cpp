#include "optim/optimizer.h"

#include <algorithm>

#include "base/units.h"
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

std::string optimizers_with(bool OptimizerDef::*ability) {
  std::string names;
  for (const OptimizerDef* def : all_optimizers())
    if (def->*ability) names += (names.empty() ? "" : " or ") + std::string(def->name);
  return names;
}

OptimizerSettings Optimizer::resolved() const {
  return with_defaults(*def, settings);
}

GlobalShape OptimizerState::shape_for(const OptimizedWeight& weight) const {
  if (extent == Extent::rows) return {weight.shape[0]};
  if (extent == Extent::columns) return {static_cast<int64_t>(weight.packed_rows.size()), weight.shape[1]};
  if (extent == Extent::blocks) return {weight.shape[0], ceil_div(weight.shape[1], kStateBlock)};
  return weight.shape;
}

bool state_blocks_whole(const GlobalShape& weight, const Layout& layout, const Mesh& mesh) {
  if (weight.rank() != 2) return true;
  int64_t parts = 1;
  for (int axis : axes_of_dim(layout, 1)) {
    if (mesh.size(axis) > 1 && layout.at(axis).order != ShardOrder::plain) return false;
    parts *= mesh.size(axis);
  }
  if (parts == 1) return true;
  bool segmented = layout.segments.dim == 1;
  std::vector<int64_t> extents = segmented ? layout.segments.extents : std::vector<int64_t>{weight[1]};
  return std::ranges::all_of(extents, [&](int64_t extent) { return extent % (parts * kStateBlock) == 0; });
}

std::map<ValueId, OptimizedWeight> optimized_weights(const Graph& graph) {
  std::map<ValueId, OptimizedWeight> weights;
  std::map<std::string_view, int64_t> elements;  // by the tensor that checkpoints store
  for (const Value& value : graph.values) {
    if (value.kind != ValueKind::parameter || !value.is_trained()) continue;
    std::vector<int64_t> packed = value.packed_rows;
    if (packed.empty()) packed.push_back(value.shape.rank() > 0 ? value.shape[0] : 1);
    weights.emplace(value.id, OptimizedWeight{.shape = value.shape, .packed_rows = std::move(packed)});
    elements[value.stored_path()] += value.shape.count();
  }
  for (auto& [id, weight] : weights) weight.stored_elements = elements.at(graph[id].stored_path());
  // Multi-token prediction reads embedding and head in a block of its own too; what is made of a weight once a step may
  // stand in front of the block that reads it.
  for (const Op& op : graph.ops)
    for (ValueId id : op.inputs)
      if (auto at = weights.find(id); at != weights.end() && op.block < 0 && !once_per_step(op))
        at->second.in_block = false;
  return weights;
}

}  // namespace sextant
