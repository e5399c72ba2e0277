// Arithmetic of clip_scaled (ops/loss_scaling.cpp), on any device. Its numbers are f32 in memory, as in GradScaler.
#pragma once

#include <cmath>
#include <cstdint>

#include "ir/attrs.h"

#ifdef __CUDACC__
#define SEXTANT_ON_ANY_DEVICE __host__ __device__
#else
#define SEXTANT_ON_ANY_DEVICE
#endif

namespace sextant {

struct LossScalingRule {
  double clip, initial, growth_factor, backoff;
  float minimum;
  int32_t growth_interval;

  explicit LossScalingRule(const Attrs& attrs)
      : clip(attrs.real("clip")),
        initial(attrs.real("initial")),
        growth_factor(attrs.real("growth_factor")),
        backoff(attrs.real("backoff")),
        minimum(static_cast<float>(attrs.real("minimum"))),
        growth_interval(static_cast<int32_t>(attrs.integer("growth_interval"))) {}

  struct Next {
    double norm, scale;
    float loss_scale, used;
    int32_t good_steps;
  };

  SEXTANT_ON_ANY_DEVICE Next after(double squares, float loss_scale, int32_t good_steps) const {
    float used = loss_scale > 0 ? loss_scale : static_cast<float>(initial);
    double norm = std::sqrt(squares) / static_cast<double>(used);
    if (!std::isfinite(norm)) {
      auto smaller = static_cast<float>(static_cast<double>(used) * backoff);
      return {norm, 0, smaller > minimum ? smaller : minimum, used, 0};
    }
    double factor = clip > 0 && norm > clip ? clip / norm : 1.0;
    float next = used;
    ++good_steps;
    if (good_steps == growth_interval) {
      auto larger = static_cast<float>(static_cast<double>(used) * growth_factor);
      if (std::isfinite(larger)) next = larger;
      good_steps = 0;
    }
    return {norm, factor / static_cast<double>(used), next, used, good_steps};
  }
};

}  // namespace sextant
