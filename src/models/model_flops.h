// The FLOPs that a model asks for, whatever the mesh and whatever is recomputed: what MFU divides by a device's peak.
#pragma once

#include <cstdint>

#include "models/spec.h"

namespace sextant {

// Of training on one token, in a sequence of `seq`: attention counted as far as it is seen, or its whole square.
struct ModelFlopsPerToken {
  double causal = 0, full = 0;
};
ModelFlopsPerToken model_flops_per_token(const ModelSpec& spec, int64_t seq);

}  // namespace sextant
