// SGD, with or without momentum. Weight decay is part of the gradient, as in PyTorch: it passes through the momentum.
#include "ops/ops.h"
#include "optim/optimizer.h"

namespace sextant {

namespace {

std::vector<OptimizerState> sgd_states(const OptimizedWeight&, const OptimizerSettings& settings) {
  if (*settings.momentum == 0) return {};
  return {{.name = "sgd_momentum"}};
}

void sgd_update(UpdateScope& s) {
  const OptimizerSettings& settings = s.settings();
  if (*settings.momentum == 0)
    return s.write(ops::sgd, {s.value(), s.gradient(), s.lr(), s.scale()}, {{"weight_decay", s.weight_decay()}});
  s.write(ops::sgd_momentum, {s.value(), s.gradient(), s.state(0), s.lr(), s.scale()},
          {{"momentum", *settings.momentum},
           {"nesterov", int64_t{*settings.nesterov ? 1 : 0}},
           {"weight_decay", s.weight_decay()}});
}

}  // namespace

const OptimizerDef optimizers::sgd{
    .name = "sgd",
    .summary = "SGD, with momentum unless that is 0",
    .defaults = {.weight_decay = 0.0, .momentum = 0.9, .nesterov = false},
    .states = sgd_states,
    .update = sgd_update,
};

}  // namespace sextant
