// The scratch of the linears of experts. A task takes a block of tokens and brings their slots together by expert; the
// gradient of weights takes an expert at a time, of all tokens.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "targets/cpu/gemm_sizes.h"
#include "targets/local_experts.h"

namespace sextant::cpu {

constexpr int64_t kTokensPerTask = 256;  // by shape alone, so that results do not depend on the thread count
constexpr int64_t kExpertTile = 64;      // rows that are multiplied at once
constexpr int64_t kGradientTile = 256;   // rows over which a weight's gradient is summed at once

inline int64_t in_lines(int64_t bytes) {
  return round_up(bytes, 64);
}

// Of one thread, in this order: the slots by expert, where each expert's begin, rows in, rows out, the GEMM's own.
struct ExpertRowsScratch {
  struct Sizes {
    int64_t top_k, experts, inputs, outputs, element;
  };
  explicit ExpertRowsScratch(const Sizes& s)
      : offsets(in_lines(kTokensPerTask * s.top_k * 4)),
        rows_in(offsets + in_lines((s.experts + 1) * 4)),
        rows_out(rows_in + in_lines(kExpertTile * s.inputs * s.element)),
        gemm(rows_out + in_lines(kExpertTile * s.outputs * s.element)),
        end(gemm + in_lines(multiply_scratch(s.outputs, s.inputs))) {}
  int64_t bytes() const { return end; }

  int64_t offsets, rows_in, rows_out, gemm, end;
};

// The slots of all tokens by expert, and where each expert's begin.
struct ExpertOrderScratch {
  ExpertOrderScratch(int64_t slots, int64_t experts)
      : offsets(in_lines(slots * 4)), end(offsets + in_lines((experts + 1) * 4)) {}

  int64_t offsets, end;
};

// That order for all threads; then of each thread rows of both operands and the GEMM's own.
struct ExpertGradientScratch {
  struct Sizes {
    int64_t slots, experts, outputs, inputs, element;
  };
  explicit ExpertGradientScratch(const Sizes& s)
      : order(s.slots, s.experts),
        inputs(in_lines(kGradientTile * s.outputs * s.element)),
        gemm(inputs + in_lines(kGradientTile * s.inputs * s.element)),
        thread_end(gemm + in_lines(multiply_scratch(s.inputs, kGradientTile))) {}
  int64_t shared() const { return order.end; }
  int64_t of_thread() const { return thread_end; }

  ExpertOrderScratch order;          // from the beginning
  int64_t inputs, gemm, thread_end;  // from a thread's beginning, where rows of outputs stand
};

}  // namespace sextant::cpu
