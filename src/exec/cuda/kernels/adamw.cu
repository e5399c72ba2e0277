#include <optional>

#include "exec/cuda/kernels/adamw_step.cuh"
#include "exec/cuda/kernels/parameter.cuh"
#include "exec/cuda/kernels/tensor_list.cuh"
#include "exec/cuda/kernels/vector.cuh"
#include "exec/cuda/runtime/kernel.h"
#include "targets/cuda/update_sizes.h"

namespace sextant::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kVector = 8;
constexpr int kRounds = 4;
constexpr int64_t kElements = int64_t{kThreads} * kVector * kRounds;  // of one block

struct Parameter {
  void* p;
  const void* g;
  float *m, *v;
  void* low;  // what lies beside a p of 16 bits; null when p is whole
  int64_t count;
  double weight_decay;
};

using ParameterList = TensorList<Parameter, 56>;

// What one step has in common for all parameters, found once on the device.
static_assert(sizeof(AdamwStep) == kAdamWStepBytes);

__global__ void find_step(AdamwInputs inputs, AdamwStep* step) {
  *step = inputs.now();
}

template <int V, class T, class G>
__device__ void update_at(const Parameter& parameter, const AdamwRule& update, int64_t at) {
  T* p = static_cast<T*>(parameter.p) + at;
  Beside<T>* low = beside_at<T>(parameter.low, at);
  Packed<G, V> gradients = load<V>(static_cast<const G*>(parameter.g) + at);
  Packed<float, V> firsts = load<V>(parameter.m + at), seconds = load<V>(parameter.v + at);
  float x[V], g[V], m[V], v[V];
  load_parameters(p, low, x);
  unpack(gradients, g);
  unpack(firsts, m);
  unpack(seconds, v);
#pragma unroll
  for (int i = 0; i < V; ++i) update(x[i], g[i], m[i], v[i]);
  store_parameters(p, low, x);
  store_floats(parameter.m + at, m);
  store_floats(parameter.v + at, v);
}

template <class T, class G>
__global__ void __launch_bounds__(kThreads)
    update_blocks(const __grid_constant__ ParameterList list, const AdamwStep* step, AdamwConstants constants) {
  int tensor = list.tensor_of(blockIdx.x);
  const Parameter& parameter = list.entries[tensor];
  int64_t block = blockIdx.x - list.first_block[tensor], n = parameter.count;
  AdamwRule update(*step, constants, parameter.weight_decay);
  if (update.step.scale == 0.0f) return;
  for (int round = 0; round < kRounds; ++round) {
    int64_t at = block * kElements + (static_cast<int64_t>(round) * kThreads + threadIdx.x) * kVector;
    if (at + kVector <= n) {
      update_at<kVector, T, G>(parameter, update, at);
    } else {
      for (int64_t i = at; i < n; ++i) update_at<1, T, G>(parameter, update, i);
    }
  }
}

Parameter parameter_of(const CudaCall& call) {
  return {.p = call.out[0].data,
          .g = call.in[1].data,
          .m = call.out[1].as<float>(),
          .v = call.out[2].as<float>(),
          .low = call.out.size() > 3 ? call.out[3].data : nullptr,
          .count = call.out[0].count(),
          .weight_decay = call.attrs.real("weight_decay")};
}

// What kernels for parameters are compiled for: gradients are f32, or as narrow as their weight.
struct UpdateTypes {
  DType weight, gradient;
  bool operator==(const UpdateTypes&) const = default;
};

// Parameters of the same types that share a step, in launches of as many as a list holds.
class Updates {
 public:
  Updates(UpdateTypes types, const CudaCall& first) : types_(types), first_(first), inputs_(adamw_inputs(first)) {
    find_step<<<1, 1, 0, first.stream>>>(inputs_, step());
  }

  bool takes(const CudaCall& call) const { return adamw_inputs(call) == inputs_; }

  void add(const CudaCall& call) {
    if (list_.full()) launch();
    list_.add(parameter_of(call), kElements);
  }

  void launch() {
    AdamwConstants constants = adamw_constants(first_);
    for_cuda_type(types_.weight, [&]<class T>() {
      if (list_.blocks == 0) return;
      auto kernel = types_.gradient == DType::f32 ? update_blocks<T, float> : update_blocks<T, T>;
      kernel<<<list_.blocks, kThreads, 0, first_.stream>>>(list_, step(), constants);
    });
    list_ = {};
  }

 private:
  AdamwStep* step() const { return reinterpret_cast<AdamwStep*>(first_.workspace); }

  UpdateTypes types_;
  const CudaCall& first_;
  AdamwInputs inputs_;
  ParameterList list_;
};

void launch_all(CudaCalls calls) {
  for (UpdateTypes types : {UpdateTypes{DType::f32, DType::f32},
                            {DType::bf16, DType::f32},
                            {DType::bf16, DType::bf16},
                            {DType::f16, DType::f32}}) {
    std::optional<Updates> updates;
    for (const CudaCall& call : calls) {
      if (UpdateTypes{call.out[0].dtype, call.in[1].dtype} != types) continue;
      if (updates && !updates->takes(call)) {
        updates->launch();
        updates.reset();
      }
      if (!updates) updates.emplace(types, call);
      updates->add(call);
    }
    if (updates) updates->launch();
  }
}

}  // namespace

const CudaKernel adamw{.launch_all = launch_all};

}  // namespace sextant::cuda
