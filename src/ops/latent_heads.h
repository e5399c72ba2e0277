// Which op makes the heads of latent attention out of narrow rows, and which brings their gradients back
// (ops/latent_qkv.cpp).
#pragma once

#include "ops/ops.h"

namespace sextant {

inline bool makes_latent_heads(const OpDef& def) {
  return &def == &ops::latent_qkv;
}

inline bool makes_gradients_of_latent_heads(const OpDef& def) {
  return &def == &ops::latent_qkv_backward;
}

}  // namespace sextant
