#include "cost/machine.h"

#include <algorithm>
#include <cmath>

namespace sextant {

const std::vector<NamedEfficiency>& named_efficiencies() {
  // No kernel passes its peak, and what falls below these bounds is not slow but broken. The attention table is itself
  // measured, so other shapes may do better than it. Beside messages: NCCL takes 24 of 132 units inside a node and
  // fewer between nodes, and what it reads and writes in a node is up to a quarter of the memory's bandwidth.
  static const std::vector<NamedEfficiency> all{
      {"product", &Efficiencies::product, {0.4, 0.95}},
      {"attention", &Efficiencies::attention, {0.6, 1.3}},
      {"memory", &Efficiencies::memory, {0.5, 0.95}},
      {"near_link", &Efficiencies::near_link, {0.4, 0.98}},
      {"far_link", &Efficiencies::far_link, {0.3, 0.98}},
      {"near_overlap", &Efficiencies::near_overlap, {0.75, 1.0}},
      {"far_overlap", &Efficiencies::far_overlap, {0.8, 1.0}},
      {"kernel_s", &Efficiencies::kernel_s, {0, 1.2e-5}},
      {"imbalance", &Efficiencies::imbalance, {1, 1.15}},
  };
  return all;
}

// The largest of n values that are normally distributed lies about sqrt(2 ln n) standard deviations above their mean.
double slowest_of(const Efficiencies& efficiency, int64_t devices) {
  if (devices <= 1) return 1;
  double deviations =
      std::sqrt(std::log(static_cast<double>(devices)) / std::log(static_cast<double>(kImbalanceDevices)));
  return 1 + (efficiency.imbalance - 1) * deviations;
}

Machine with_experts(Machine machine) {
  if (machine.fitted_experts) {
    machine.fitted = machine.fitted_experts;
    machine.fitted_on = machine.fitted_experts_on;
  }
  return machine;
}

LevelExtent Machine::extent_of(size_t level) const {
  const Level& at = levels[level];
  return {.unit_devices = level == 0 ? 1 : std::max<int64_t>(1, levels[level - 1].devices),
          .devices = at.devices,
          .innermost = level == 0,
          .bytes_per_s = at.link.bytes_per_s};
}

double Machine::peak(const std::string& dtype) const {
  auto found = device.peaks.find(dtype);
  return found == device.peaks.end() ? 0 : found->second;
}

double Machine::gemm_rate(const std::string& dtype) const {
  auto found = device.gemm_rates.find(dtype);
  return found == device.gemm_rates.end() ? 1 : found->second;
}

}  // namespace sextant
