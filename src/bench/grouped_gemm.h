// Grouped GEMMs: the linears of experts, forward and both gradients, timed as the ops that training runs. Enters: the
// sizes of a layer's experts, or a config's Programs; leaves: results of kind "grouped gemm", verified, with the size
// [experts, rows of an expert, columns, depth].
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bench/result.h"
#include "exec/executor.h"
#include "ops/ops.h"
#include "plan/predict.h"

namespace sextant {

// The experts of one layer on one rank. Gate and up are one linear, of twice the width.
struct ExpertLayer {
  int64_t experts = 64, per_token = 8, tokens = 16384, hidden = 2048, width = 1024;
};

// One op of them, on one rank.
struct GroupedGemm {
  const OpDef* def = nullptr;
  TensorTypes inputs;
  Attrs attrs;
};

std::vector<GroupedGemm> grouped_gemms_of(const ExpertLayer& layer);
// Of all ranks: each once.
std::vector<GroupedGemm> grouped_gemms_of(const LoweredRun& run);
bool is_grouped_gemm(const Op& op);

std::string_view grouped_type_name(DType dtype);  // of f32, bf16 and f16, as benchmarks call them

struct GroupedGemmRequest {
  Executor& executor;
  std::vector<GroupedGemm> gemms;
  std::vector<DType> types;                  // that their operands have: f32, bf16 or f16
  double imbalance = 1;                      // of the expert with most rows over the mean
  std::map<std::string, double> peaks = {};  // flop/s by type, where known
  Repeat repeat = {};
};
void bench_grouped_gemms(const GroupedGemmRequest& request, BenchReport& report, const Watch& watch);

}  // namespace sextant
