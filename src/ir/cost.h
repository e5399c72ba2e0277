// Cost: what an op needs, from shapes only. Executed flops count multiply and add as two; bytes are the least that must
// cross memory (each operand once).
#pragma once

#include "base/units.h"

namespace sextant {

struct Cost {
  Flops flops;   // executed
  Bytes read;
  Bytes written;

  Cost& operator+=(const Cost& o) {
    flops += o.flops, read += o.read, written += o.written;
    return *this;
  }
};

}  // namespace sextant
