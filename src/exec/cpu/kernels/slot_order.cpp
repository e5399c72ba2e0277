#include <algorithm>

#include "exec/cpu/kernel.h"

namespace sextant::cpu {

namespace {

void run_slot_order(const KernelCall& call) {
  const Tensor& experts = call.in[0];
  const auto* chosen = experts.as<int32_t>();
  const int64_t slots = experts.count(), count = call.attrs.integer("experts");
  auto *order = call.out[0].as<int32_t>(), *places = order + slots, *offsets = call.out[1].as<int32_t>();
  std::fill_n(offsets, count + 1, 0);
  for (int64_t i = 0; i < slots; ++i) ++offsets[chosen[i] + 1];
  for (int64_t e = 0; e < count; ++e) offsets[e + 1] += offsets[e];
  for (int64_t i = 0; i < slots; ++i) {
    places[i] = offsets[chosen[i]]++;
    order[places[i]] = static_cast<int32_t>(i);
  }
  for (int64_t e = count; e > 0; --e) offsets[e] = offsets[e - 1];  // each had moved on to the next one's
  offsets[0] = 0;
}

}  // namespace

const CpuKernel slot_order{.run = run_slot_order};

}  // namespace sextant::cpu
