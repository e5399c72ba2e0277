// Lion (Chen et al. 2023): the sign of an interpolated momentum. Its learning rate is three to ten times smaller than
// AdamW's, its weight decay as many times larger.
#include "ops/ops.h"
#include "optim/optimizer.h"

namespace sextant {

const OptimizerDef optimizers::lion{
    .name = "lion",
    .summary = "Lion: the sign of an interpolated momentum",
    .defaults = {.beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1},
    .states = [](const OptimizedWeight&, const OptimizerSettings&) -> std::vector<OptimizerState> {
      return {{.name = "lion_m"}};
    },
    .update =
        [](UpdateScope& s) {
          s.write(ops::lion, {s.value(), s.gradient(), s.state(0), s.lr(), s.scale()},
                  {{"beta1", *s.settings().beta1}, {"beta2", *s.settings().beta2}, {"weight_decay", s.weight_decay()}});
        },
};

}  // namespace sextant
