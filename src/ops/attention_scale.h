// The factor on attention scores, from an op's attrs.
#pragma once

#include "ir/attrs.h"

namespace sextant {

// 0 = 1/sqrt(head_dim), which kernels compute themselves.
inline double attention_scale_of(const Attrs& attrs) {
  return attrs.has("scale") ? attrs.real("scale") : 0;
}

}  // namespace sextant
