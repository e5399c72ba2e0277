#include <algorithm>
#include <cmath>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"
#include "exec/cpu/kernels/column_sums.h"

namespace sextant::cpu {

namespace {

double z_factor(const Attrs& attrs) {
  return attrs.real("coefficient") / static_cast<double>(attrs.integer("tokens"));
}

template <class T>
T router_lse(const T* logits, int64_t n) {
  T top = *std::max_element(logits, logits + n), sum = 0;
  for (int64_t e = 0; e < n; ++e) sum += std::exp(logits[e] - top);
  return top + std::log(sum);
}

void run_router_z_loss(const KernelCall& call) {
  const Tensor& logits = call.in[0];
  for_real_type(logits.dtype, [&]<class T>() {
    int64_t n = logits.shape.last();
    RowBlocks blocks = row_blocks(logits.shape.rows());
    T* sums = reinterpret_cast<T*>(call.workspace);
    for_blocks(call.team, blocks.rows, blocks.block, [&](int64_t begin, int64_t end) {
      T sum = 0;
      for (int64_t t = begin; t < end; ++t) {
        T lse = router_lse(logits.as<T>() + t * n, n);
        sum += lse * lse;
      }
      sums[begin / blocks.block] = sum;
    });
    double sum = 0;
    for (int64_t block = 0; block < blocks.count(); ++block) sum += static_cast<double>(sums[block]);
    *call.out[0].as<T>() = static_cast<T>(z_factor(call.attrs) * sum);
  });
}

void run_router_z_loss_backward(const KernelCall& call) {
  const Tensor& logits = call.in[1];
  for_real_type(logits.dtype, [&]<class T>() {
    int64_t n = logits.shape.last();
    auto factor = static_cast<T>(2 * static_cast<double>(*call.in[0].as<T>()) * z_factor(call.attrs));
    for_blocks(call.team, logits.shape.rows(), rows_per_task(n), [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const T* x = logits.as<T>() + t * n;
        T *dlogits = call.out[0].as<T>() + t * n, lse = router_lse(x, n);
        for (int64_t e = 0; e < n; ++e) dlogits[e] = factor * lse * std::exp(x[e] - lse);
      }
    });
  });
}

}  // namespace

const CpuKernel router_z_loss{.run = run_router_z_loss};
const CpuKernel router_z_loss_backward{.run = run_router_z_loss_backward};

}  // namespace sextant::cpu
