#include <algorithm>
#include <cmath>

#include "exec/cpu/kernel.h"

namespace sextant::cpu {

namespace {

template <class T>
void add_lost(const Tensor& lost, T* sums) {
  for_real_type(lost.dtype, [&]<class L>() {
    for (int64_t i = 0; i < lost.count(); ++i) sums[i] += static_cast<T>(lost.as<L>()[i]);
  });
}

void run_join_lost(const KernelCall& call) {
  for_real_type(call.out[0].dtype, [&]<class T>() {
    T* sums = call.out[0].as<T>();
    std::fill_n(sums, call.out[0].count(), T{0});
    sums[0] = *call.in[0].as<T>();
    for (const Tensor& lost : call.in.subspan(1)) add_lost(lost, sums + 1);
  });
}

void run_clip_lost(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T* sums = call.in[0].as<T>();
    int64_t count = call.in[0].count(), rounds = call.attrs.integer("rounds");
    double clip = call.attrs.real("clip"), norm = std::sqrt(static_cast<double>(sums[0]));
    double scale = clip > 0 ? std::min(1.0, clip / norm) : 1.0;
    bool served = rounds >= count || sums[rounds] == 0;
    *call.out[0].as<T>() = static_cast<T>(norm);
    *call.out[1].as<T>() = static_cast<T>(std::isfinite(norm) && served ? scale : 0.0);
    *call.out[2].as<T>() = sums[1];
    int64_t last = count - 1;
    while (last > 0 && !(sums[last] > 0)) --last;
    *call.out[3].as<T>() = static_cast<T>(1 + last);
  });
}

}  // namespace

const CpuKernel join_lost{.run = run_join_lost};
const CpuKernel clip_lost{.run = run_clip_lost};

}  // namespace sextant::cpu
