#include <algorithm>
#include <cmath>

#include "exec/cpu/kernel.h"

namespace sextant::cpu {

namespace {

void run_clip_scale(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    double sum = 0, clip = call.attrs.real("clip");
    for (const Tensor& squares : call.in) sum += static_cast<double>(*squares.as<T>());
    double norm = std::sqrt(sum);
    double scale = clip > 0 ? std::min(1.0, clip / norm) : 1.0;
    *call.out[0].as<T>() = static_cast<T>(norm);
    *call.out[1].as<T>() = static_cast<T>(std::isfinite(norm) ? scale : 0.0);
  });
}

}  // namespace

const CpuKernel clip_scale{.run = run_clip_scale};

}  // namespace sextant::cpu
