#include <array>
#include <cmath>
#include <type_traits>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"
#include "exec/cpu/kernels/fp8_numbers.h"
#include "exec/cpu/kernels/real_runs.h"
#include "exec/cpu/kernels/vector_math.h"

namespace sextant::cpu {

namespace {

// Runs body(begin, end, sums) on runs of the input's elements and adds up what it finds, task by task.
template <size_t kNumbers, class Body>
void add_up_runs(const KernelCall& call, const Body& body) {
  using Sums = std::array<double, kNumbers>;
  const Tensor& x = call.in[0];
  auto* of_tasks = reinterpret_cast<Sums*>(call.workspace);
  for_blocks(call.team, x.count(), kElementsPerTask, [&](int64_t begin, int64_t end) {
    Sums& sums = of_tasks[begin / kElementsPerTask] = {};
    for_real_runs(x, begin, end, [&](int64_t from, int64_t to) { body(from, to, sums); });
  });
  Sums total{};
  for (int64_t task = 0; task < ceil_div(x.count(), kElementsPerTask); ++task)
    for (size_t i = 0; i < kNumbers; ++i) total[i] += of_tasks[task][i];
  for_real_type(call.out[0].dtype, [&]<class T>() {
    for (size_t i = 0; i < kNumbers; ++i) call.out[0].as<T>()[i] = static_cast<T>(total[i]);
  });
}

void run_tensor_statistics(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T* x = call.in[0].as<T>();
    T zero_below = static_cast<T>(call.attrs.real("zero_below")), largest = static_cast<T>(call.attrs.real("largest"));
    add_up_runs<4>(call, [&](int64_t begin, int64_t end, std::array<double, 4>& sums) {
      // Numbers as wide as the elements, so that the loop is one of vectors.
      using Count = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
      Count small = 0, fitting = 0;
      for (int64_t i = begin; i < end; ++i) {
        T magnitude = std::abs(x[i]);
        small += magnitude <= zero_below ? 1 : 0;
        fitting += magnitude < largest ? 1 : 0;
      }
      sums[0] += static_cast<double>(end - begin);
      sums[1] += square_sum(x + begin, end - begin);
      sums[2] += static_cast<double>(small);
      sums[3] += static_cast<double>(end - begin - fitting);
    });
  });
}

void run_rounding_statistics(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T* x = call.in[0].as<T>();
    const auto* q = call.in[1].as<uint8_t>();
    uint8_t largest = fp8_bits(fp8_format(call.in[1].dtype), fp8_format(call.in[1].dtype).largest);
    add_up_runs<3>(call, [&](int64_t begin, int64_t end, std::array<double, 3>& sums) {
      int64_t lost = 0, reached = 0;
      for (int64_t i = begin; i < end; ++i) {
        lost += (q[i] & 0x7F) == 0 && x[i] != 0 ? 1 : 0;
        reached += (q[i] & 0x7F) >= largest ? 1 : 0;
      }
      sums[0] += static_cast<double>(end - begin);
      sums[1] += static_cast<double>(lost);
      sums[2] += static_cast<double>(reached);
    });
  });
}

void run_change_statistics(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T *before = call.in[0].as<T>(), *after = call.in[1].as<T>();
    add_up_runs<3>(call, [&](int64_t begin, int64_t end, std::array<double, 3>& sums) {
      constexpr int64_t kPiece = 256;
      std::array<T, kPiece> change;
      for (int64_t piece = begin; piece < end; piece += kPiece) {
        int64_t n = std::min(kPiece, end - piece);
        for (int64_t i = 0; i < n; ++i) change[static_cast<size_t>(i)] = after[piece + i] - before[piece + i];
        sums[1] += square_sum(change.data(), n);
      }
      sums[0] += static_cast<double>(end - begin);
      sums[2] += square_sum(after + begin, end - begin);
    });
  });
}

}  // namespace

const CpuKernel tensor_statistics{.run = run_tensor_statistics};
const CpuKernel rounding_statistics{.run = run_rounding_statistics};
const CpuKernel change_statistics{.run = run_change_statistics};

}  // namespace sextant::cpu
