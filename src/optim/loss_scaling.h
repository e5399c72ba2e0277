// Dynamic loss scaling (Micikevicius et al. 2018), by the rule of torch.amp.GradScaler: the gradients of a step are
// those of the loss times a scale; a step with a gradient that is not finite changes nothing and makes the scale
// smaller, so many good ones in a row make it larger.
#pragma once

#include <cstdint>
#include <string_view>

namespace sextant {

struct LossScaling {
  double initial = 65536;
  double growth_factor = 2, backoff = 0.5;
  int64_t growth_interval = 2000;
  double minimum = 1;
};

// The values that hold it between steps. Programs that do not scale have none.
inline constexpr std::string_view kLossScalePath = "loss_scaling.scale", kGoodStepsPath = "loss_scaling.good_steps";
// The scale of the step, handed out.
inline constexpr std::string_view kUsedLossScalePath = "loss_scaling.used";

}  // namespace sextant
