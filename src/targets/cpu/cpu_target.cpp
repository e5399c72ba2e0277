#include "targets/cpu/cpu_target.h"

#include "base/threads.h"

namespace sextant {

namespace {

constexpr int64_t kAlignment = 64;  // a cache line, and the widest vector

}  // namespace

CpuScratch cpu_scratch(const Op& op, const LocalTypes& in, const LocalTypes& out, int threads) {
  KernelQuery query{op.attrs, in, out, threads};
  int64_t kernel = cpu_kernel_needs().workspace(*op.def, query).n;
  if (!op.attrs.has("checked")) return {.check_at = kernel};
  return {.check_at = round_up(kernel, kAlignment), .check = cpu_kernel_needs().check(*op.def, query).n};
}

Target cpu_target(int threads) {
  int team = threads > 0 ? threads : core_count();
  return {.name = "cpu",
          .threads = team,
          .alignment = kAlignment,
          .fp8 = true,
          .workspace =
              [team](const Op& op, const LocalTypes& in, const LocalTypes& out) {
                CpuScratch scratch = cpu_scratch(op, in, out, team);
                return Bytes{scratch.check_at + scratch.check};
              },
          .can_check = [](const OpDef& def) { return cpu_kernel_needs().can_check(def); },
          .done_together = [](const OpDef& def) { return cpu_kernel_needs().grouping(def) == Grouping::together; }};
}

}  // namespace sextant
