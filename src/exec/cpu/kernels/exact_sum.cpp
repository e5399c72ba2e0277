#include "exec/exact_arithmetic.h"

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"

namespace sextant::cpu {

namespace {

// Programs have sums in f64; tests have all operands in f32 too.
void run_exact_sum(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    for_real_type(call.out[0].dtype, [&]<class Sum>() {
      const T* __restrict x = call.in[0].as<T>();
      Sum* __restrict sum = call.out[0].as<Sum>();
      const double limit = exact_limit(call.attrs.integer("terms"));
      const bool adds = call.accumulate();
      for_blocks(call.team, call.in[0].count(), kElementsPerTask, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          Sum term = static_cast<Sum>(exact_term(static_cast<double>(x[i]), limit));
          sum[i] = adds ? sum[i] + term : term;
        }
      });
    });
  });
}

void run_exact_value(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class Sum>() {
    for_real_type(call.out[0].dtype, [&]<class T>() {
      const Sum* sum = call.in[0].as<Sum>();
      T* x = call.out[0].as<T>();
      for_blocks(call.team, call.in[0].count(), kElementsPerTask, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) x[i] = static_cast<T>(sum[i]);
      });
    });
  });
}

void add_and_carry(ExactSquares& sum, const ExactSquares& part) {
  sum.add(part);
  sum.carry();
}

ExactSquares bins_in(const Tensor& tensor) {
  ExactSquares bins;
  for_real_type(tensor.dtype, [&]<class T>() {
    const T* x = tensor.as<T>();
    bins = {static_cast<double>(x[0]), static_cast<double>(x[1]), static_cast<double>(x[2])};
  });
  return bins;
}

void write_bins(const ExactSquares& bins, const Tensor& tensor) {
  for_real_type(tensor.dtype, [&]<class T>() {
    T* x = tensor.as<T>();
    x[0] = static_cast<T>(bins.high), x[1] = static_cast<T>(bins.middle), x[2] = static_cast<T>(bins.low);
  });
}

// Value: what the optimizer reads the sum as.
template <class Value, class Sum>
ExactSquares exact_squares_of(const Sum* x, int64_t count) {
  static_assert(kElementsPerTask <= ExactSquares::kBetweenCarries);
  ExactSquares sum;
  for (int64_t i = 0; i < count; ++i) sum.add_square_of(static_cast<double>(static_cast<Value>(x[i])));
  sum.carry();
  return sum;
}

void run_exact_squares(const KernelCall& call) {
  int64_t n = call.in[0].count();
  auto* partials = reinterpret_cast<ExactSquares*>(call.workspace);
  bool wide = call.attrs.text_or("dtype", "f32") == name_of(DType::f64);
  for_real_type(call.in[0].dtype, [&]<class Sum>() {
    const Sum* x = call.in[0].as<Sum>();
    for_blocks(call.team, n, kElementsPerTask, [&](int64_t begin, int64_t end) {
      partials[begin / kElementsPerTask] =
          wide ? exact_squares_of<double>(x + begin, end - begin) : exact_squares_of<float>(x + begin, end - begin);
    });
  });
  ExactSquares sum;
  for (int64_t task = 0; task < ceil_div(n, kElementsPerTask); ++task) add_and_carry(sum, partials[task]);
  write_bins(sum, call.out[0]);
}

void run_add_exact_squares(const KernelCall& call) {
  ExactSquares sum;
  for (const Tensor& part : call.in) add_and_carry(sum, bins_in(part));
  write_bins(sum, call.out[0]);
}

void run_exact_total(const KernelCall& call) {
  for_real_type(call.out[0].dtype,
                [&]<class T>() { *call.out[0].as<T>() = static_cast<T>(bins_in(call.in[0]).total()); });
}

}  // namespace

const CpuKernel exact_sum{.run = run_exact_sum};
const CpuKernel exact_value{.run = run_exact_value};
const CpuKernel exact_squares{.run = run_exact_squares};
const CpuKernel add_exact_squares{.run = run_add_exact_squares};
const CpuKernel exact_total{.run = run_exact_total};

}  // namespace sextant::cpu
