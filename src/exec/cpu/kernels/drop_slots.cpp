#include <algorithm>
#include <numeric>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"

namespace sextant::cpu {

namespace {

void run_drop_slots(const KernelCall& call) {
  const Tensor &weights = call.in[0], &experts = call.in[1];
  int64_t sequences = weights.shape[0], slots = sequences > 0 ? weights.count() / sequences : 0;
  int64_t capacity = call.attrs.integer("capacity");
  bool by_weight = call.attrs.integer_or("by_weight", 0) != 0;
  auto* orders = reinterpret_cast<int32_t*>(call.workspace);  // of each sequence's slots
  for_real_type(weights.dtype, [&]<class T>() {
    call.team.parallel_for(sequences, [&](int64_t sequence, int) {
      const T* weight = weights.as<T>() + sequence * slots;
      const int32_t* expert = experts.as<int32_t>() + sequence * slots;
      T* kept_weight = call.out[0].as<T>() + sequence * slots;
      int32_t *kept_expert = call.out[1].as<int32_t>() + sequence * slots, *order = orders + sequence * slots;
      std::iota(order, order + slots, 0);
      std::sort(order, order + slots, [&](int32_t a, int32_t b) {
        if (expert[a] != expert[b]) return expert[a] < expert[b];
        if (by_weight && weight[a] != weight[b]) return weight[a] > weight[b];
        return a < b;
      });
      for (int64_t i = 0, taken = 0; i < slots; ++i) {
        taken = i > 0 && expert[order[i]] == expert[order[i - 1]] ? taken + 1 : 0;
        bool kept = taken < capacity;
        kept_weight[order[i]] = kept ? weight[order[i]] : T{0};
        kept_expert[order[i]] = kept ? expert[order[i]] : -1;
      }
    });
    *call.out[2].as<T>() =
        static_cast<T>(std::count(call.out[1].as<int32_t>(), call.out[1].as<int32_t>() + call.out[1].count(), -1));
  });
}

void run_drop_slots_backward(const KernelCall& call) {
  const Tensor& dy = call.in[0];
  for_real_type(dy.dtype, [&]<class T>() {
    for_blocks(call.team, dy.count(), rows_per_task(1), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        call.out[0].as<T>()[i] = call.in[1].as<int32_t>()[i] < 0 ? T{0} : dy.as<T>()[i];
    });
  });
}

}  // namespace

const CpuKernel drop_slots{.run = run_drop_slots};
const CpuKernel drop_slots_backward{.run = run_drop_slots_backward};

}  // namespace sextant::cpu
