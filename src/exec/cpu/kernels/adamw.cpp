#include <array>

#include "base/halves.h"
#include "exec/cpu/kernels/adamw_step.h"
#include "exec/cpu/kernels/blocks.h"

namespace sextant::cpu {

namespace {

// A piece that the first cache holds, with its f32 weights and gradients.
constexpr int64_t kHalvedPiece = 1024;

// Weights of a GPU that computes in bf16 (ops/adamw.cpp), updated on the host: the upper halves beside the low ones,
// gradients in f32 or bf16.
void run_halved_adamw(const KernelCall& call) {
  const AdamwRow<float> step = adamw_step_of<float>(call);
  if (step.scale == 0) return;
  auto *upper = call.out[0].as<uint16_t>(), *low = call.out[3].as<uint16_t>();
  const bool narrow = call.in[1].dtype == DType::bf16;
  for_blocks(call.team, call.out[0].count(), kElementsPerTask, [&](int64_t begin, int64_t end) {
    std::array<float, kHalvedPiece> p, g;
    for (int64_t at = begin; at < end; at += kHalvedPiece) {
      const int64_t n = std::min(kHalvedPiece, end - at);
      for (int64_t i = 0; i < n; ++i) p[static_cast<size_t>(i)] = from_halves(upper[at + i], low[at + i]);
      for (int64_t i = 0; i < n && narrow; ++i)
        g[static_cast<size_t>(i)] = bf16_value(call.in[1].as<uint16_t>()[at + i]);
      AdamwRow<float> row = step;
      row.p = p.data();
      row.g = narrow ? g.data() : call.in[1].as<float>() + at;
      row.m = call.out[1].as<float>() + at;
      row.v = call.out[2].as<float>() + at;
      adamw_row(row, n);
      for (int64_t i = 0; i < n; ++i) {
        upper[at + i] = upper_half(p[static_cast<size_t>(i)]);
        low[at + i] = low_half(p[static_cast<size_t>(i)]);
      }
    }
  });
}

void run_adamw(const KernelCall& call) {
  if (call.out[0].dtype == DType::bf16) return run_halved_adamw(call);
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
