// The learning rate of a step: a pure function of the config, so that resume needs no state.
//   constant      warm-up, then lr
//   cosine        warm-up, then half a cosine down to min_lr at the last step
//   linear        warm-up, then a line down to min_lr
//   wsd           warm-up, lr, then a line down to min_lr over the last `decay` steps
//   inverse-sqrt  warm-up, then lr·√(warmup/step), never below min_lr
#pragma once

#include "config/run_config.h"

namespace sextant {

// `step` counts from 1. Warm-up rises linearly: step w of `warmup` runs at lr·w/warmup.
double learning_rate(const OptimizerSection& optimizer, int64_t steps, int64_t step);

}  // namespace sextant
