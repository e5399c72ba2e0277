// step_parameter: one pass over a weight, its gradient (or direction) and its states, element by element and in place.
//
// A Rule is a kernel parameter. rule.now() reads the step's scalars on the device and gives an object with skip(),
// whether the step is skipped, and operator()(float& p, float g, float* states).
#pragma once

#include "base/units.h"
#include "exec/cuda/kernels/parameter.cuh"
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

constexpr int kStepThreads = 256;
constexpr int kStepVector = 8;

template <int kStates>
struct StepTensors {
  void* p;
  const float* g;
  float* states[kStates > 0 ? kStates : 1];
  void* low;  // what lies beside a p of 16 bits; null when p is whole
  int64_t count;
};

template <class T, int V, int kStates, class Now>
__device__ inline void step_at(const StepTensors<kStates>& tensors, const Now& now, int64_t at) {
  T* p = static_cast<T*>(tensors.p) + at;
  Beside<T>* low = beside_at<T>(tensors.low, at);
  float x[V], g[V], states[kStates > 0 ? kStates : 1][V];
  load_parameters(p, low, x);
  load_floats(tensors.g + at, g);
#pragma unroll
  for (int k = 0; k < kStates; ++k) load_floats(tensors.states[k] + at, states[k]);
#pragma unroll
  for (int i = 0; i < V; ++i) {
    float own[kStates > 0 ? kStates : 1];
#pragma unroll
    for (int k = 0; k < kStates; ++k) own[k] = states[k][i];
    now(x[i], g[i], own);
#pragma unroll
    for (int k = 0; k < kStates; ++k) states[k][i] = own[k];
  }
  store_parameters(p, low, x);
#pragma unroll
  for (int k = 0; k < kStates; ++k) store_floats(tensors.states[k] + at, states[k]);
}

template <class T, int kStates, class Rule>
__global__ void __launch_bounds__(kStepThreads)
    step_kernel(const __grid_constant__ StepTensors<kStates> tensors, const __grid_constant__ Rule rule) {
  auto now = rule.now();
  if (now.skip()) return;
  int64_t at = (static_cast<int64_t>(blockIdx.x) * kStepThreads + threadIdx.x) * kStepVector, n = tensors.count;
  if (at + kStepVector <= n) {
    step_at<T, kStepVector>(tensors, now, at);
  } else {
    for (int64_t i = at; i < n; ++i) step_at<T, 1>(tensors, now, i);
  }
}

template <int kStates, class Rule>
void step_parameter(const CudaCall& call, const StepTensors<kStates>& tensors, const Rule& rule) {
  if (tensors.count == 0) return;
  auto blocks = static_cast<unsigned>(ceil_div(tensors.count, int64_t{kStepThreads} * kStepVector));
  for_cuda_type(call.out[0].dtype,
                [&]<class T>() { step_kernel<T><<<blocks, kStepThreads, 0, call.stream>>>(tensors, rule); });
}

// Numbers that complete the weight to f32 (parameter.cuh), if the op has them as its last output; otherwise null.
inline void* low_of(const CudaCall& call, size_t output) {
  return call.out.size() > output ? call.out[output].data : nullptr;
}

}  // namespace sextant::cuda
