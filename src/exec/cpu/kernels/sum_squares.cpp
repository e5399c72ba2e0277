#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"
#include "exec/cpu/kernels/vector_math.h"

namespace sextant::cpu {

namespace {

void run_sum_squares(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T* x = call.in[0].as<T>();
    int64_t n = call.in[0].count();
    double* partials = reinterpret_cast<double*>(call.workspace);
    for_blocks(call.team, n, kElementsPerTask, [&](int64_t begin, int64_t end) {
      partials[begin / kElementsPerTask] = square_sum(x + begin, end - begin);
    });
    double sum = 0;
    for (int64_t task = 0; task < ceil_div(n, kElementsPerTask); ++task) sum += partials[task];
    *call.out[0].as<T>() = static_cast<T>(sum);
  });
}

}  // namespace

const CpuKernel sum_squares{.run = run_sum_squares};

}  // namespace sextant::cpu
