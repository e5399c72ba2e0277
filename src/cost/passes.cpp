#include "cost/passes.h"

#include <algorithm>

namespace sextant {

Passes passes_of(const SoftwareProfile& profile, const OpDef& op) {
  switch (std::ranges::count(profile.eager_ops, op.name) > 0 ? Elementwise::eager : profile.elementwise) {
    case Elementwise::fused:
      return {};
    case Elementwise::compiled:
      return op.passes.compiled;
    case Elementwise::jit:
      return op.passes.jit;
    case Elementwise::eager:
      return op.passes.eager;
  }
  return {};
}

}  // namespace sextant
