#include <optional>

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
  const float* g;
  float *m, *v;
  uint16_t* low;  // the low halves of a bf16 p; null when p is whole
  int64_t count;
  float weight_decay;
};

using ParameterList = TensorList<Parameter, 56>;

// What one step has in common for all parameters, found once on the device: its numbers change from step to step.
struct Step {
  float scale, lr, rate, root;  // rate = lr/(1−beta1^step), root = 1/sqrt(1−beta2^step)
};
static_assert(sizeof(Step) == kAdamWStepBytes);

struct Constants {
  float beta1, beta2, eps;
};

struct StepInputs {
  const float *lr, *scale;
  const int32_t* step;
  double beta1, beta2;
  bool operator==(const StepInputs&) const = default;
};

__global__ void find_step(StepInputs inputs, Step* step) {
  double lr = *inputs.lr, count = *inputs.step;
  *step = {*inputs.scale, *inputs.lr, static_cast<float>(lr / (1.0 - pow(inputs.beta1, count))),
           static_cast<float>(1.0 / sqrt(1.0 - pow(inputs.beta2, count)))};
}

struct Update {
  Step step;
  Constants constants;
  float keep;

  __device__ void operator()(float& p, float g, float& m, float& v) const {
    g *= step.scale;
    m = constants.beta1 * m + (1.0f - constants.beta1) * g;
    v = constants.beta2 * v + (1.0f - constants.beta2) * g * g;
    p = keep * p - step.rate * m / (step.root * sqrtf(v) + constants.eps);
  }
};

template <int V, class T>
__device__ void update_at(const Parameter& parameter, const Update& update, int64_t at) {
  T* p = static_cast<T*>(parameter.p) + at;
  uint16_t* low = parameter.low ? parameter.low + at : nullptr;
  Packed<float, V> gradients = load<V>(parameter.g + at), firsts = load<V>(parameter.m + at),
                   seconds = load<V>(parameter.v + at);
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

template <class T>
__global__ void __launch_bounds__(kThreads)
    update_blocks(const __grid_constant__ ParameterList list, const Step* step, Constants constants) {
  int tensor = list.tensor_of(blockIdx.x);
  const Parameter& parameter = list.entries[tensor];
  int64_t block = blockIdx.x - list.first_block[tensor], n = parameter.count;
  Update update{*step, constants, 1.0f - step->lr * parameter.weight_decay};
  if (update.step.scale == 0.0f) return;
  for (int round = 0; round < kRounds; ++round) {
    int64_t at = block * kElements + (static_cast<int64_t>(round) * kThreads + threadIdx.x) * kVector;
    if (at + kVector <= n) {
      update_at<kVector, T>(parameter, update, at);
    } else {
      for (int64_t i = at; i < n; ++i) update_at<1, T>(parameter, update, i);
    }
  }
}

StepInputs inputs_of(const CudaCall& call) {
  return {call.in[4].as<float>(), call.in[5].as<float>(), call.in[6].as<int32_t>(), call.attrs.real("beta1"),
          call.attrs.real("beta2")};
}

Parameter parameter_of(const CudaCall& call) {
  return {.p = call.out[0].data,
          .g = call.in[1].as<float>(),
          .m = call.out[1].as<float>(),
          .v = call.out[2].as<float>(),
          .low = call.out.size() > 3 ? call.out[3].as<uint16_t>() : nullptr,
          .count = call.out[0].count(),
          .weight_decay = static_cast<float>(call.attrs.real("weight_decay"))};
}

// Parameters of one type that share a step, in launches of as many as a list holds.
class Updates {
 public:
  Updates(DType dtype, const CudaCall& first) : dtype_(dtype), first_(first), inputs_(inputs_of(first)) {
    find_step<<<1, 1, 0, first.stream>>>(inputs_, step());
  }

  bool takes(const CudaCall& call) const { return inputs_of(call) == inputs_; }

  void add(const CudaCall& call) {
    if (list_.full()) launch();
    list_.add(parameter_of(call), kElements);
  }

  void launch() {
    Constants constants{static_cast<float>(inputs_.beta1), static_cast<float>(inputs_.beta2),
                        static_cast<float>(first_.attrs.real("eps"))};
    for_cuda_type(dtype_, [&]<class T>() {
      if (list_.blocks > 0) update_blocks<T><<<list_.blocks, kThreads, 0, first_.stream>>>(list_, step(), constants);
    });
    list_ = {};
  }

 private:
  Step* step() const { return reinterpret_cast<Step*>(first_.workspace); }

  DType dtype_;
  const CudaCall& first_;
  StepInputs inputs_;
  ParameterList list_;
};

void launch_all(CudaCalls calls) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    std::optional<Updates> updates;
    for (const CudaCall& call : calls) {
      if (call.out[0].dtype != dtype) continue;
      if (updates && !updates->takes(call)) {
        updates->launch();
        updates.reset();
      }
      if (!updates) updates.emplace(dtype, call);
      updates->add(call);
    }
    if (updates) updates->launch();
  }
}

}  // namespace

const CudaKernel adamw{.launch_all = launch_all};

}  // namespace sextant::cuda
