// Copies of 16 bytes from global to shared memory that go on while the thread works. A thread may read what it copied
// itself after wait_for_copies, without a barrier.
#pragma once

#include <cuda_runtime.h>

#include "exec/cuda/kernels/vector.cuh"

namespace sextant::cuda {

// Single elements, of rows that do not begin on 16-byte boundaries, are copied at once.
template <class T, int V>
__device__ inline void copy_async(Packed<T, V>* to, const T* from) {
  if constexpr (sizeof(Packed<T, V>) == 16) {
    auto address = static_cast<uint32_t>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
  } else {
    *to = load<V>(from);
  }
}

// All copies since the last call become one group.
__device__ inline void close_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Until at most kOpen of the thread's groups, the last ones, are still on their way.
template <int kOpen>
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kOpen) : "memory");
}

}  // namespace sextant::cuda
