#include "targets/cpu/cpu_target.h"

#include "base/threads.h"
#include "targets/cpu/widening.h"

namespace sextant {

namespace {

constexpr int64_t kAlignment = 64;  // a cache line, and the widest vector

Bytes cpu_workspace(const Op& op, const LocalTypes& in, const LocalTypes& out, int threads) {
  const KernelTable& needs = cpu_kernel_needs();
  if (needs.elements(*op.def) == Elements::any) return needs.workspace(*op.def, {op.attrs, in, out, threads});
  cpu::Widening widening(op, in, out);
  if (!widening.needed()) return needs.workspace(*op.def, {op.attrs, in, out, threads});
  Bytes own = needs.workspace(*op.def, {op.attrs, widening.wide_in, widening.wide_out, threads});
  return {widening.bytes() + own.n};
}

}  // namespace

Target cpu_target(int threads) {
  int team = threads > 0 ? threads : core_count();
  return {.name = "cpu",
          .threads = team,
          .alignment = kAlignment,
          .computes_in = {DType::f32, DType::f16},
          .fp8 = true,
          .workspace = [team](const Op& op, const LocalTypes& in,
                              const LocalTypes& out) { return cpu_workspace(op, in, out, team); },
          .done_together = [](const OpDef& def) { return cpu_kernel_needs().grouping(def) == Grouping::together; }};
}

}  // namespace sextant
