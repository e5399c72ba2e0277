// Dynamic loss scaling (optim/loss_scaling.h): the seeds of backward are multiplied by a scale that is a state of the
// Program. The update divides by it and chooses the next one (passes/update.cpp).
#pragma once

#include <vector>

#include "ir/graph.h"
#include "optim/loss_scaling.h"
#include "passes/autodiff.h"

namespace sextant {

// Before layouts are inferred; the seeds of `losses` become scaled ones.
void scale_losses(Graph& graph, const LossScaling& scaling, std::vector<Loss>& losses);

}  // namespace sextant
