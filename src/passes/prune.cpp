#include "passes/prune.h"

#include <algorithm>

#include "ir/alias.h"

namespace sextant {

void prune(Graph& graph) {
  std::vector<bool> needed(graph.values.size(), false);
  for (const Value& value : graph.values) needed[static_cast<size_t>(value.id)] = value.kind == ValueKind::fetch;
  std::vector<Op> kept;
  for (size_t i = graph.ops.size(); i-- > 0;) {
    Op& op = graph.ops[i];
    bool read =
        std::any_of(op.outputs.begin(), op.outputs.end(), [&](ValueId id) { return needed[static_cast<size_t>(id)]; });
    std::vector<Alias> aliases = aliases_of(op);
    bool updates =
        std::any_of(aliases.begin(), aliases.end(), [](const Alias& a) { return a.rule == Alias::Rule::must; });
    if (!read && !updates) continue;
    for (ValueId id : op.inputs) needed[static_cast<size_t>(id)] = true;
    kept.push_back(std::move(op));
  }
  std::reverse(kept.begin(), kept.end());
  graph.ops = std::move(kept);
}

}  // namespace sextant
