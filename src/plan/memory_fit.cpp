#include "plan/memory_fit.h"

#include <array>

#include "ops/fp8_recipe.h"

namespace sextant {

std::string_view name_of(MemoryBasis basis) {
  constexpr std::array<std::string_view, 4> kNames{"exact", "estimate", "programs", "wide"};
  return kNames[static_cast<size_t>(basis)];
}

MemoryBasis memory_basis(const Machine* machine, const SoftwareProfile* profile, const RunConfig& run, bool experts) {
  // On a CPU it is our kernels that are planned for.
  bool ours = !machine || !profile || profile->kernels == Kernels::ours || machine->device.kind == DeviceKind::cpu;
  if (ours) return find_block_format(run.train.precision) ? MemoryBasis::wide : MemoryBasis::exact;
  return experts ? MemoryBasis::programs : MemoryBasis::estimate;
}

std::string_view name_of(MemoryFit fit) {
  constexpr std::array<std::string_view, 3> kNames{"fits", "may fit", "does not fit"};
  return kNames[static_cast<size_t>(fit)];
}

MemoryFit memory_fit(double bytes, double room, const std::optional<MemoryInterval>& interval) {
  if (!interval) return bytes <= room ? MemoryFit::fits : MemoryFit::does_not_fit;
  return interval->high(bytes) <= room  ? MemoryFit::fits
         : interval->low(bytes) <= room ? MemoryFit::may_fit
                                        : MemoryFit::does_not_fit;
}

}  // namespace sextant
