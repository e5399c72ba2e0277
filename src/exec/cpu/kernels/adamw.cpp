#include "exec/cpu/kernels/adamw_step.h"
#include "exec/cpu/kernels/blocks.h"

namespace sextant::cpu {

namespace {

void run_adamw(const KernelCall& call) {
  for_real_type(call.out[0].dtype, [&]<class T>() {
    AdamwRow<T> step = adamw_step_of<T>(call);
    if (step.scale == 0) return;
    step.p = call.out[0].as<T>();
    step.g = call.in[1].as<T>();
    step.m = call.out[1].as<T>();
    step.v = call.out[2].as<T>();
    for_blocks(call.team, call.out[0].count(), kElementsPerTask, [&](int64_t begin, int64_t end) {
      AdamwRow<T> part = step;
      for (T** state : {&part.p, &part.m, &part.v}) *state += begin;
      part.g += begin;
      adamw_row(part, end - begin);
    });
  });
}

}  // namespace

const CpuKernel adamw{.run = run_adamw};

}  // namespace sextant::cpu
