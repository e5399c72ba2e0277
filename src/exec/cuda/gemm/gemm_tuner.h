// GemmTuner: finds the fastest algorithm for a GEMM by timing the library's candidates on random data, and remembers
// it on disk: one file per device and library version, one line per shape. A file that cannot be read or written costs
// time only.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "exec/cuda/gemm/gemm_plan.h"

namespace sextant {

class GemmTuner {
 public:
  GemmTuner(const CudaDevice& device, cublasLtHandle_t handle);

  using Candidates = std::vector<cublasLtMatmulHeuristicResult_t>;
  TimedAlgorithm fastest(const GemmPlan& plan, const Candidates& candidates);

 private:
  TimedAlgorithm timed(const GemmPlan& plan, const Candidates& candidates) const;
  void load();
  void append(const std::string& shape, const TimedAlgorithm& choice) const;

  const CudaDevice& device_;
  cublasLtHandle_t handle_;
  std::filesystem::path file_;  // empty: nowhere to keep it
  std::map<std::string, TimedAlgorithm> known_;
};

// Where results of tuning are kept: $SEXTANT_CACHE, $XDG_CACHE_HOME/sextant or ~/.cache/sextant; empty when there is
// none.
std::filesystem::path tuning_directory();

}  // namespace sextant
