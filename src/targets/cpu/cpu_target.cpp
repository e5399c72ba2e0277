#include "targets/cpu/cpu_target.h"

#include "base/threads.h"
#include "targets/cpu/widening.h"

namespace sextant {

namespace {

constexpr int64_t kAlignment = 64;  // a cache line, and the widest vector

}  // namespace

KernelScratch cpu_scratch(const Op& op, const LocalTypes& in, const LocalTypes& out, int threads) {
  const KernelTable& needs = cpu_kernel_needs();
  // Copies in f32 of narrow operands lie before the kernel's own scratch.
  cpu::Widening widening(op, in, out, needs.bf16_inputs(*op.def));
  bool widened = needs.elements(*op.def) != Elements::any && widening.needed();
  KernelQuery query{op.attrs, widened ? widening.wide_in : in, widened ? widening.wide_out : out, threads};
  int64_t kernel = needs.workspace(*op.def, query).n + (widened ? widening.bytes() : 0);
  if (!op.attrs.has("checked")) return {.check_at = kernel};
  return {.check_at = round_up(kernel, kAlignment), .check = needs.check(*op.def, query).n};
}

Target cpu_target(int threads) {
  int team = threads > 0 ? threads : core_count();
  return {.name = "cpu",
          .threads = team,
          .alignment = kAlignment,
          .computes_in = {DType::f32, DType::bf16, DType::f16},
          .fp8 = true,
          .workspace = [team](const Op& op, const LocalTypes& in,
                              const LocalTypes& out) { return cpu_scratch(op, in, out, team).bytes(); },
          .can_check = [](const OpDef& def) { return cpu_kernel_needs().can_check(def); },
          .checks_between_ranks = true,
          .done_together = [](const OpDef& def) { return cpu_kernel_needs().grouping(def) == Grouping::together; }};
}

}  // namespace sextant
