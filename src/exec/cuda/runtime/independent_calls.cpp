#include "exec/cuda/runtime/independent_calls.h"

#include <algorithm>

namespace sextant {

IndependentCalls::Memory IndependentCalls::memory_of(const Tensor& tensor) {
  auto begin = reinterpret_cast<uintptr_t>(tensor.data);
  return {begin, begin + static_cast<uintptr_t>(tensor.count() * size_of(tensor.dtype))};
}

bool IndependentCalls::meets(const std::vector<Memory>& taken, const std::vector<Memory>& asked) {
  return std::ranges::any_of(asked, [&](const Memory& a) {
    return std::ranges::any_of(taken, [&](const Memory& t) { return a.begin < t.end && t.begin < a.end; });
  });
}

bool IndependentCalls::take(const CudaCall& call, int64_t workspace) {
  std::vector<Memory> reads, writes;
  for (const Tensor& tensor : call.in) reads.push_back(memory_of(tensor));
  for (const Tensor& tensor : call.out) writes.push_back(memory_of(tensor));
  auto scratch = reinterpret_cast<uintptr_t>(call.workspace);
  if (workspace > 0) writes.push_back({scratch, scratch + static_cast<uintptr_t>(workspace)});
  if (meets(read_, writes) || meets(written_, writes) || meets(written_, reads)) return false;
  read_.insert(read_.end(), reads.begin(), reads.end());
  written_.insert(written_.end(), writes.begin(), writes.end());
  return true;
}

}  // namespace sextant
