#include "targets/cpu/cpu_target.h"

#include "base/threads.h"

namespace sextant {

namespace {

constexpr int64_t kAlignment = 64;  // a cache line, and the widest vector

}  // namespace

Target cpu_target(int threads) {
  int team = threads > 0 ? threads : core_count();
  return {.name = "cpu",
          .threads = team,
          .alignment = kAlignment,
          .fp8 = true,
          .workspace =
              [team](const Op& op, const LocalTypes& in, const LocalTypes& out) {
                return cpu_kernel_needs().workspace(*op.def, {op.attrs, in, out, team});
              },
          .done_together = [](const OpDef& def) { return cpu_kernel_needs().grouping(def) == Grouping::together; }};
}

}  // namespace sextant
