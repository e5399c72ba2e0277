// AdamW (Loshchilov & Hutter 2019).
#include "optim/adamw.h"

#include "ops/ops.h"

namespace sextant {

OptimizerSettings adamw_defaults() {
  return {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1};
}

std::vector<OptimizerState> adamw_states() {
  // A mean of squares is never negative: the update takes its root.
  return {{.name = "adam_m"}, {.name = "adam_v", .range = OptimizerState::Range::not_negative}};
}

void adamw_update(UpdateScope& s, ValueId lr) {
  s.write(ops::adamw, {s.value(), s.gradient(), s.state(0), s.state(1), lr, s.scale(), s.step()},
          {{"beta1", *s.settings().beta1},
           {"beta2", *s.settings().beta2},
           {"eps", *s.settings().eps},
           {"weight_decay", s.weight_decay()}});
}

const OptimizerDef optimizers::adamw{
    .name = "adamw",
    .summary = "AdamW: means of gradients and of their squares",
    .defaults = adamw_defaults(),
    .states = [](const OptimizedWeight&, const OptimizerSettings&) { return adamw_states(); },
    .update = [](UpdateScope& s) { adamw_update(s, s.lr()); },
};

}  // namespace sextant
