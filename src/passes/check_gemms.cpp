#include "passes/check_gemms.h"

#include "base/error.h"

namespace sextant {

void mark_checked_gemms(Program& program, const Target& target, double share) {
  BUG_IF(!target.can_check, "{} has no kernels that check their products", target.name);
  for (Region& region : program.regions)
    for (Op& op : region.ops)
      if (target.can_check(*op.def)) op.attrs.set("checked", share);
}

}  // namespace sextant
