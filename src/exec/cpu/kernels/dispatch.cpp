#include <algorithm>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"
#include "targets/token_groups.h"

namespace sextant::cpu {

namespace {

// lost[i] = the slots beyond place (i + 1)·capacity of their queue.
void count_lost(const Tensor& lost, const int64_t* queues, int64_t count, int64_t capacity) {
  for_real_type(lost.dtype, [&]<class T>() {
    for (int64_t i = 0; i < lost.count(); ++i) {
      int64_t left = 0;
      for (int64_t queue = 0; queue < count; ++queue) left += std::max<int64_t>(0, queues[queue] - (i + 1) * capacity);
      lost.as<T>()[i] = static_cast<T>(left);
    }
  });
}

void run_dispatch_map(const KernelCall& call) {
  const Tensor& experts = call.in[0];
  const Attrs& attrs = call.attrs;
  TokenGroups groups(attrs, call.out[0].shape);
  int64_t top_k = experts.shape.last(), blocks = attrs.integer("blocks"), capacity = attrs.integer("capacity");
  int64_t per_block = attrs.integer("experts_per_block"), rows = blocks * capacity;
  int64_t first = attrs.integer("round") * capacity;
  auto* lengths = reinterpret_cast<int64_t*>(call.workspace);  // of each group's queues, so far
  call.team.parallel_for(groups.count, [&](int64_t group, int) {
    int32_t *sources = call.out[0].as<int32_t>() + group * rows,
            *row_experts = call.out[1].as<int32_t>() + group * rows;
    int64_t* queues = lengths + group * blocks;
    std::fill_n(sources, rows, -1);
    std::fill_n(row_experts, rows, -1);
    std::fill_n(queues, blocks, 0);
    for (int64_t token = 0; token < groups.tokens(); ++token) {
      const int32_t* chosen = experts.as<int32_t>() + groups.row(group, token) * top_k;
      for (int64_t j = 0; j < top_k; ++j) {
        if (chosen[j] < 0) continue;
        int64_t block = chosen[j] / per_block, place = queues[block]++ - first;
        if (place < 0 || place >= capacity) continue;
        sources[block * capacity + place] = static_cast<int32_t>(token * top_k + j);
        row_experts[block * capacity + place] = chosen[j];
      }
    }
  });
  count_lost(call.out[2], lengths, groups.count * blocks, capacity);
}

bool is_slot(int64_t source, int64_t slots) {
  return source >= 0 && source < slots;
}

void run_dispatch(const KernelCall& call) {
  const Tensor &x = call.in[0], &sources = call.in[1];
  TokenGroups groups(call.attrs, sources.shape);
  int64_t top_k = call.attrs.integer("top_k"), rows = sources.shape.last(), width = x.shape.last();
  int64_t slots = groups.tokens() * top_k;
  for_real_type(x.dtype, [&]<class T>() {
    for_blocks(call.team, groups.count * rows, rows_per_task(width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        int64_t source = sources.as<int32_t>()[row];
        T* to = call.out[0].as<T>() + row * width;
        if (is_slot(source, slots))
          std::copy_n(x.as<T>() + groups.row(row / rows, source / top_k) * width, width, to);
        else
          std::fill_n(to, width, T{0});
      }
    });
  });
}

// places[slot of a group] = the slot's row in [0, n), or -1.
int32_t* find_places(const KernelCall& call, const TokenGroups& groups, const Tensor& sources, int64_t slots) {
  auto* places = reinterpret_cast<int32_t*>(call.workspace);
  int64_t rows = sources.shape.last();
  call.team.parallel_for(groups.count, [&](int64_t group, int) {
    std::fill_n(places + group * slots, slots, -1);
    const int32_t* source = sources.as<int32_t>() + group * rows;
    for (int64_t row = 0; row < rows; ++row)
      if (is_slot(source[row], slots)) places[group * slots + source[row]] = static_cast<int32_t>(row);
  });
  return places;
}

// The rows of each token in the order in which they are added (ops/dispatch.cpp); -1, none, first.
void order_rows(const KernelCall& call, int32_t* places, int64_t tokens, int64_t top_k) {
  int64_t capacity = call.attrs.integer("capacity");
  bool last_first = call.attrs.integer_or("last_first", 0) != 0;
  for_blocks(call.team, tokens, rows_per_task(top_k), [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token)
      std::sort(places + token * top_k, places + (token + 1) * top_k, [&](int32_t a, int32_t b) {
        if (a < 0 || b < 0 || a % capacity == b % capacity) return a < b;
        return (a % capacity < b % capacity) != last_first;
      });
  });
}

void run_combine(const KernelCall& call) {
  const Tensor &x = call.in[0], &sources = call.in[1];
  TokenGroups groups(call.attrs, sources.shape);
  int64_t top_k = call.attrs.integer("top_k"), rows = sources.shape.last(), width = x.shape.last();
  int64_t tokens = groups.tokens();
  int32_t* places = find_places(call, groups, sources, tokens * top_k);
  order_rows(call, places, groups.count * tokens, top_k);
  for_real_type(x.dtype, [&]<class T>() {
    for_blocks(call.team, groups.count * tokens, rows_per_task(width), [&](int64_t begin, int64_t end) {
      for (int64_t token = begin; token < end; ++token) {
        int64_t group = token / tokens;
        T* y = call.out[0].as<T>() + groups.row(group, token % tokens) * width;
        if (!call.accumulate()) std::fill_n(y, width, T{0});
        for (int64_t i = token * top_k; i < (token + 1) * top_k; ++i) {
          if (places[i] < 0) continue;
          const T* from = x.as<T>() + (group * rows + places[i]) * width;
          for (int64_t j = 0; j < width; ++j) y[j] += from[j];
        }
      }
    });
  });
}

void run_dispatch_weights(const KernelCall& call) {
  const Tensor &weights = call.in[0], &sources = call.in[1];
  TokenGroups groups(call.attrs, sources.shape);
  int64_t top_k = call.attrs.integer("top_k"), rows = sources.shape.last(), slots = groups.tokens() * top_k;
  for_real_type(weights.dtype, [&]<class T>() {
    for_blocks(call.team, groups.count * rows, rows_per_task(1), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        int64_t source = sources.as<int32_t>()[row];
        call.out[0].as<T>()[row] =
            is_slot(source, slots) ? weights.as<T>()[groups.row(row / rows, source / top_k) * top_k + source % top_k]
                                   : T{0};
      }
    });
  });
}

void run_dispatch_weights_backward(const KernelCall& call) {
  const Tensor &dy = call.in[0], &sources = call.in[1];
  TokenGroups groups(call.attrs, sources.shape);
  int64_t top_k = call.attrs.integer("top_k"), rows = sources.shape.last(), slots = groups.tokens() * top_k;
  const int32_t* places = find_places(call, groups, sources, slots);
  for_real_type(dy.dtype, [&]<class T>() {
    for_blocks(call.team, groups.count * slots, rows_per_task(1), [&](int64_t begin, int64_t end) {
      for (int64_t slot = begin; slot < end; ++slot) {
        int64_t group = slot / slots, within = slot % slots;
        T& dweight = call.out[0].as<T>()[groups.row(group, within / top_k) * top_k + within % top_k];
        if (!call.accumulate()) dweight = 0;
        if (places[slot] >= 0) dweight += dy.as<T>()[group * rows + places[slot]];
      }
    });
  });
}

}  // namespace

const CpuKernel dispatch_map{.run = run_dispatch_map};
const CpuKernel dispatch{.run = run_dispatch};
const CpuKernel combine{.run = run_combine};
const CpuKernel dispatch_weights{.run = run_dispatch_weights};
const CpuKernel dispatch_weights_backward{.run = run_dispatch_weights_backward};

}  // namespace sextant::cpu
