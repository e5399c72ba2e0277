#include "cost/planned_target.h"

#include "targets/foreign/foreign_needs.h"

namespace sextant {

Target overlay(Target target, const SoftwareProfile& profile) {
  if (profile.kernels == Kernels::ours) return target;
  target.name = "accelerator";
  if (profile.elementwise != Elementwise::fused) target.fusions = {};
  target.workspace = [](const Op& op, const LocalTypes& in, const LocalTypes& out) {
    return foreign_kernel_needs().workspace(*op.def, {op.attrs, in, out});
  };
  target.done_together = [](const OpDef& def) { return foreign_kernel_needs().grouping(def) == Grouping::together; };
  return target;
}

Target planned_target(const SoftwareProfile& profile, Determinism determinism) {
  return overlay(cuda_target(determinism), profile);
}

}  // namespace sextant
