// bench ops and bench attention: ops of the registry as Programs of their own, on a real executor.
#pragma once

#include "bench/result.h"
#include "exec/executor.h"

namespace sextant {

struct OpBenchRequest {
  Executor& executor;
  std::string only = {};         // ops whose name contains this
  double least_bytes = 4 << 20;  // examples are made larger, along batch and widths, until they hold this much
  Repeat repeat = {};
};
void bench_ops(const OpBenchRequest& request, BenchReport& report, const Watch& watch);

struct AttentionCase {
  int64_t batch = 1, seq = 1024, heads = 8, kv_heads = 8, head_dim = 64;
};
struct AttentionRequest {
  Executor& executor;
  std::vector<AttentionCase> shapes;
  double peak_flops_per_s = 0;
  Repeat repeat = {};
};
// Forward and backward, causal flops counted.
void bench_attention(const AttentionRequest& request, BenchReport& report, const Watch& watch);

}  // namespace sextant
