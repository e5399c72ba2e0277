// Where a parameter's gradient and optimizer state are kept, by ZeRO stage: layouts, and nothing else.
#pragma once

#include "ir/value.h"

namespace sextant {

// The gradient as it is accumulated over microbatches: the dual of the parameter's layout, and from stage 2 on sharded
// over those of the parameter's data axes that ZeRO shards over, instead of partial.
Layout stored_gradient_layout(const Value& parameter, const Mesh& mesh, int zero);

// The operands of the optimizer: whole on every rank, or from stage 1 on sharded over the same axes.
Layout update_layout(const Value& parameter, const Mesh& mesh, int zero);

}  // namespace sextant
