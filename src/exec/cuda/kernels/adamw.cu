#include <optional>

#include "exec/cuda/kernels/adamw_step.cuh"
#include "exec/cuda/kernels/parameter.cuh"
#include "exec/cuda/kernels/tensor_list.cuh"
#include "exec/cuda/kernels/vector.cuh"
#include "exec/cuda/kernels/word_sums.cuh"
#include "exec/cuda/runtime/kernel.h"
#include "exec/cuda/runtime/summed_launch.h"
#include "targets/cuda/update_sizes.h"

namespace sextant::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kVector = 8;
constexpr int kRounds = 4;
constexpr int64_t kElements = int64_t{kThreads} * kVector * kRounds;  // of one block

// Without checksums nothing is summed.
struct NoWords {
  template <class... Loaded>
  __device__ void add_read(const Loaded&...) {}
  template <class T, class... Stored>
  __device__ void add_written(const Stored&...) {}
};

// Word sums of the p, m, v and low that a thread has read and written.
struct StateWords {
  WordSum read[kSummedOutputs] = {}, written[kSummedOutputs] = {};

  template <int V, class T>
  __device__ void add_read(const T* p, const Beside<T>* low, int64_t at, const Packed<float, V>& m,
                           const Packed<float, V>& v) {
    read[0] += word_sum(load<V>(p), at);
    read[1] += word_sum(m, at);
    read[2] += word_sum(v, at);
    if (low) read[3] += word_sum(load<V>(low), at);
  }
  template <class T, int V>
  __device__ void add_written(const float (&p)[V], bool has_low, int64_t at, const float (&m)[V], const float (&v)[V]) {
    WeightWords weight = words_of_parameters<T>(p, has_low, at);
    written[0] += weight.weight;
    written[1] += word_sum_of_floats(m);
    written[2] += word_sum_of_floats(v);
    written[3] += weight.beside;
  }
  // By all threads of a block: to the sums of its tensor.
  __device__ void add_to(DeviceStateSum* sums, const SummedOutputs& places) const {
    __shared__ WordSum of_block[2 * kSummedOutputs];
    if (threadIdx.x < 2 * kSummedOutputs) of_block[threadIdx.x] = 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < static_cast<int>(kSummedOutputs); ++i) {
      WordSum of_read = warp_sum(read[i]), of_written = warp_sum(written[i]);
      if (threadIdx.x % 32 != 0) continue;
      atomicAdd(&of_block[2 * i], of_read);
      atomicAdd(&of_block[2 * i + 1], of_written);
    }
    __syncthreads();
    if (threadIdx.x >= 2 * kSummedOutputs || places[threadIdx.x / 2] < 0) return;
    DeviceStateSum& sum = sums[places[threadIdx.x / 2]];
    atomicAdd(threadIdx.x % 2 == 0 ? &sum.running : &sum.written, of_block[threadIdx.x]);
  }
};

struct Parameter {
  using Words = NoWords;
  void* p;
  const void* g;
  float *m, *v;
  void* low;  // what lies beside a p of 16 bits; null when p is whole
  int64_t count;
  double weight_decay;
};

using ParameterList = TensorList<Parameter, 56>;

// One whose states have checksums, in the order p, m, v, low.
struct SummedParameter : Parameter {
  using Words = StateWords;
  SummedOutputs places;
};

using SummedList = TensorList<SummedParameter, 48>;

// AdamwStep holds the scalars of one step. They are the same for all parameters and are computed once, on the device.
static_assert(sizeof(AdamwStep) == kAdamWStepBytes);

__global__ void find_step(AdamwInputs inputs, AdamwStep* step) {
  *step = inputs.now();
}

// `words`: of what is loaded and stored.
template <int V, class T, class G, class Words>
__device__ void update_at(const Parameter& parameter, const AdamwRule& update, int64_t at, Words& words) {
  T* p = static_cast<T*>(parameter.p) + at;
  Beside<T>* low = beside_at<T>(parameter.low, at);
  Packed<G, V> gradients = load<V>(static_cast<const G*>(parameter.g) + at);
  Packed<float, V> firsts = load<V>(parameter.m + at), seconds = load<V>(parameter.v + at);
  float x[V], g[V], m[V], v[V];
  load_parameters(p, low, x);
  unpack(gradients, g);
  unpack(firsts, m);
  unpack(seconds, v);
  words.add_read(p, low, at, firsts, seconds);
#pragma unroll
  for (int i = 0; i < V; ++i) update(x[i], g[i], m[i], v[i]);
  store_parameters(p, low, x);
  store_floats(parameter.m + at, m);
  store_floats(parameter.v + at, v);
  words.template add_written<T>(x, low != nullptr, at, m, v);
}

template <class T, class G, class Entry, int kMost>
__global__ void __launch_bounds__(kThreads)
    update_blocks(const __grid_constant__ TensorList<Entry, kMost> list, const AdamwStep* step,
                  AdamwConstants constants, DeviceStateSum* sums) {
  int tensor = list.tensor_of(blockIdx.x);
  const Entry& parameter = list.entries[tensor];
  int64_t block = blockIdx.x - list.first_block[tensor], n = parameter.count;
  AdamwRule update(*step, constants, parameter.weight_decay);
  if (update.step.scale == 0.0f) return;
  typename Entry::Words words;
  for (int round = 0; round < kRounds; ++round) {
    int64_t at = block * kElements + (static_cast<int64_t>(round) * kThreads + threadIdx.x) * kVector;
    if (at + kVector <= n) {
      update_at<kVector, T, G>(parameter, update, at, words);
    } else {
      for (int64_t i = at; i < n; ++i) update_at<1, T, G>(parameter, update, i, words);
    }
  }
  if constexpr (requires { parameter.places; }) words.add_to(sums, parameter.places);
}

// One thread, which knows which change is the first.
__global__ void finish_sums(const __grid_constant__ SummedList list, const AdamwStep* step, DeviceStateSum* sums,
                            ChangedStateReport* report) {
  if (step->scale == 0.0f) return;
  for (int i = 0; i < list.tensors; ++i) {
    for (int32_t place : list.entries[i].places) {
      if (place < 0) continue;
      DeviceStateSum& sum = sums[place];
      if (sum.running != sum.recorded && report->place < 0) *report = {place, sum.recorded, sum.running};
      sum = {sum.written, 0, 0};
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

// Types that the parameter kernels are compiled for: gradients are f32, or as narrow as their weight.
struct UpdateTypes {
  DType weight, gradient;
  bool operator==(const UpdateTypes&) const = default;
};

// Parameters of the same types that share a step, in launches of as many as a list holds.
class Updates {
 public:
  Updates(UpdateTypes types, const CudaCall& first, const SummedStates* states)
      : types_(types), first_(first), inputs_(adamw_inputs(first)), states_(states) {
    find_step<<<1, 1, 0, first.stream>>>(inputs_, step());
  }

  bool takes(const CudaCall& call) const { return adamw_inputs(call) == inputs_; }

  // `number`: of the call, among all.
  void add(const CudaCall& call, size_t number) {
    if (list_.full() || summed_.full()) launch();
    if (states_)
      summed_.add({parameter_of(call), states_->places[number]}, kElements);
    else
      list_.add(parameter_of(call), kElements);
  }

  void launch() {
    if (list_.blocks > 0) launch_list(list_, nullptr);
    if (summed_.blocks > 0) {
      launch_list(summed_, states_->sums);
      finish_sums<<<1, 1, 0, first_.stream>>>(summed_, step(), states_->sums, states_->report);
    }
    list_ = {};
    summed_ = {};
  }

 private:
  template <class Entry, int kMost>
  void launch_list(const TensorList<Entry, kMost>& list, DeviceStateSum* sums) {
    AdamwConstants constants = adamw_constants(first_);
    for_cuda_type(types_.weight, [&]<class T>() {
      auto kernel =
          types_.gradient == DType::f32 ? update_blocks<T, float, Entry, kMost> : update_blocks<T, T, Entry, kMost>;
      kernel<<<list.blocks, kThreads, 0, first_.stream>>>(list, step(), constants, sums);
    });
  }

  AdamwStep* step() const { return reinterpret_cast<AdamwStep*>(first_.workspace); }

  UpdateTypes types_;
  const CudaCall& first_;
  AdamwInputs inputs_;
  const SummedStates* states_;  // null: without checksums
  ParameterList list_;
  SummedList summed_;
};

void launch_updates(CudaCalls calls, const SummedStates* states) {
  for (UpdateTypes types : {UpdateTypes{DType::f32, DType::f32},
                            {DType::bf16, DType::f32},
                            {DType::bf16, DType::bf16},
                            {DType::f16, DType::f32}}) {
    std::optional<Updates> updates;
    for (size_t number = 0; number < calls.size(); ++number) {
      const CudaCall& call = calls[number];
      if (UpdateTypes{call.out[0].dtype, call.in[1].dtype} != types) continue;
      if (updates && !updates->takes(call)) {
        updates->launch();
        updates.reset();
      }
      if (!updates) updates.emplace(types, call, states);
      updates->add(call, number);
    }
    if (updates) updates->launch();
  }
}

void launch_all(CudaCalls calls) {
  launch_updates(calls, nullptr);
}

void launch_all_summed(CudaCalls calls, const SummedStates& states) {
  launch_updates(calls, &states);
}

}  // namespace

const CudaKernel adamw{.launch_all = launch_all, .launch_all_summed = launch_all_summed};

}  // namespace sextant::cuda
