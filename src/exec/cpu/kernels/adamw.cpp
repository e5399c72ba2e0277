#include "exec/cpu/kernels/adamw_step.h"
#include "exec/cpu/kernels/blocks.h"

namespace sextant::cpu {

namespace {

void run_adamw(const KernelCall& call) {
  for_real_type(call.out[0].dtype, [&]<class T>() {
    AdamwRow<T> step = adamw_step_of<T>(call);
    if (step.scale == 0) return;
    for_blocks(call.team, call.out[0].count(), kElementsPerTask, [&](int64_t begin, int64_t end) {
      adamw_row(adamw_part(call, step, begin, call.out[1].as<T>() + begin, call.out[2].as<T>() + begin), end - begin);
    });
  });
}

}  // namespace

const CpuKernel adamw{.run = run_adamw};

}  // namespace sextant::cpu
