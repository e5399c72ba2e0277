#include <algorithm>
#include <span>

#include "base/units.h"
#include "exec/cpu/kernel.h"
#include "targets/copy_runs.h"
#include "targets/token_groups.h"

namespace sextant::cpu {

namespace {

struct CopyLimits {
  int64_t capacity, copies;
  bool serve(const QueueCounts& asked) const { return asked.slots <= capacity && asked.copies <= copies; }
};

// lost as the contract of copies_map has it; `rounds` are those of the queues' counts.
void count_lost_copies(const Tensor& lost, std::span<const QueueCounts> queues, const CopyLimits& limits,
                       int64_t rounds) {
  for_real_type(lost.dtype, [&]<class T>() {
    for (int64_t i = 0; i < lost.count(); ++i) {
      int64_t left = 0, times = i + 1;
      for (const QueueCounts& queue : queues)
        left +=
            times == rounds
                ? queue.slots - queue.served
                : std::max({int64_t{0}, queue.slots - times * limits.capacity, queue.copies - times * limits.copies});
      lost.as<T>()[i] = static_cast<T>(left);
    }
  });
}

// Of one group: where its tokens' copies and rows stand.
struct GroupCopies {
  int32_t *copies, *sources, *row_experts;
};

void run_copies_map(const KernelCall& call) {
  const Tensor& experts = call.in[0];
  const Attrs& attrs = call.attrs;
  TokenGroups groups(attrs, call.out[0].shape);
  int64_t top_k = experts.shape.last(), blocks = attrs.integer("blocks"), of_block = attrs.integer("experts_per_block");
  CopyLimits limits{attrs.integer("capacity"), attrs.integer("copies")};
  int64_t round = attrs.integer("round"), tokens_of_round = attrs.integer("tokens");
  int64_t rows = blocks * limits.capacity, copies = blocks * limits.copies;
  auto* queues = reinterpret_cast<QueueCounts*>(call.workspace);  // of each group, of all tokens so far
  QueueCounts* of_round = queues + groups.count * blocks;         // the same of the tokens of one round
  call.team.parallel_for(groups.count, [&](int64_t group, int) {
    GroupCopies out{call.out[0].as<int32_t>() + group * copies, call.out[1].as<int32_t>() + group * rows,
                    call.out[2].as<int32_t>() + group * rows};
    std::fill_n(out.copies, copies, -1);
    std::fill_n(out.sources, rows, -1);
    std::fill_n(out.row_experts, rows, -1);
    std::fill_n(queues + group * blocks, blocks, QueueCounts{});
    for (int64_t token = 0; token < groups.tokens(); ++token) {
      if (token % tokens_of_round == 0) std::fill_n(of_round + group * blocks, blocks, QueueCounts{});
      const int32_t* chosen = experts.as<int32_t>() + groups.row(group, token) * top_k;
      for (int64_t j = 0; j < top_k; ++j) {
        int64_t block = chosen[j] / of_block;
        auto here = [&](int32_t expert) { return expert >= 0 && expert / of_block == block; };
        if (!here(chosen[j]) || std::any_of(chosen, chosen + j, here)) continue;
        int64_t slots = std::count_if(chosen + j, chosen + top_k, here);
        QueueCounts &queue = queues[group * blocks + block], &asked = of_round[group * blocks + block];
        for (QueueCounts* counts : {&queue, &asked}) counts->slots += slots, ++counts->copies;
        if (!limits.serve(asked)) continue;
        queue.served += slots;
        if (token / tokens_of_round != round) continue;
        out.copies[block * limits.copies + asked.copies - 1] = static_cast<int32_t>(token * top_k + j);
        int64_t row = block * limits.capacity + asked.slots - slots;
        for (int64_t slot = j; slot < top_k; ++slot) {
          if (!here(chosen[slot])) continue;
          out.sources[row] = static_cast<int32_t>(token * top_k + slot);
          out.row_experts[row++] = static_cast<int32_t>(token * blocks * of_block + chosen[slot]);
        }
      }
    }
  });
  count_lost_copies(call.out[3], {queues, static_cast<size_t>(groups.count * blocks)}, limits,
                    ceil_div(groups.tokens(), tokens_of_round));
}

void run_copies_to_rows(const KernelCall& call) {
  const Tensor& x = call.in[0];
  CopyRuns runs(call.attrs, call.in[1].as<int32_t>(), call.in[1].shape);
  int64_t width = x.shape.last();
  for_real_type(x.dtype, [&]<class T>() {
    call.team.parallel_for(runs.blocks, [&](int64_t block, int) {
      int64_t copy = -1;
      for (int64_t row = block * runs.capacity; row < (block + 1) * runs.capacity; ++row) {
        copy += runs.begins(row) ? 1 : 0;
        T* to = call.out[0].as<T>() + row * width;
        if (runs.experts[row] >= 0 && copy < runs.copies)
          std::copy_n(x.as<T>() + (block * runs.copies + copy) * width, width, to);
        else
          std::fill_n(to, width, T{0});
      }
    });
  });
}

void run_rows_to_copies(const KernelCall& call) {
  const Tensor& x = call.in[0];
  CopyRuns runs(call.attrs, call.in[1].as<int32_t>(), call.in[1].shape);
  int64_t width = x.shape.last();
  for_real_type(x.dtype, [&]<class T>() {
    call.team.parallel_for(runs.blocks, [&](int64_t block, int) {
      T* y = call.out[0].as<T>() + block * runs.copies * width;
      std::fill_n(y, runs.copies * width, T{0});
      int64_t copy = -1;
      for (int64_t row = block * runs.capacity; row < (block + 1) * runs.capacity; ++row) {
        copy += runs.begins(row) ? 1 : 0;
        if (runs.experts[row] < 0 || copy >= runs.copies) continue;
        const T* from = x.as<T>() + row * width;
        for (int64_t i = 0; i < width; ++i) y[copy * width + i] += from[i];
      }
    });
  });
}

}  // namespace

const CpuKernel copies_map{.run = run_copies_map};
const CpuKernel copies_to_rows{.run = run_copies_to_rows};
const CpuKernel rows_to_copies{.run = run_rows_to_copies};

}  // namespace sextant::cpu
