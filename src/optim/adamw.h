// AdamW's part in optimizers that leave some weights to it.
#pragma once

#include <vector>

#include "optim/optimizer.h"

namespace sextant {

OptimizerSettings adamw_defaults();

std::vector<OptimizerState> adamw_states(const OptimizedWeight& weight, const OptimizerSettings& settings);

// One step with the learning rate `lr`, a scalar value.
void adamw_update(UpdateScope& scope, ValueId lr);

}  // namespace sextant
