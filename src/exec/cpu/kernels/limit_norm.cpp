#include "exec/cpu/kernel.h"

namespace sextant::cpu {

namespace {

void run_limit_norm(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    bool within = *call.in[1].as<T>() <= *call.in[2].as<T>();
    *call.out[0].as<T>() = within ? *call.in[0].as<T>() : T{0};
  });
}

}  // namespace

const CpuKernel limit_norm{.run = run_limit_norm};

}  // namespace sextant::cpu
