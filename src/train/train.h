// train: runs the Program of a config, step by step, and keeps what it learns. Everything the run leaves is under `out`:
// config.toml, metrics.jsonl and step-NNNNNN/ checkpoints.
#pragma once

#include <filesystem>
#include <optional>

#include "config/run_config.h"
#include "exec/executor.h"

namespace sextant {

struct TrainResult {
  int64_t step = 0;
  double loss = 0;                        // of the last step
  std::optional<double> validation_loss;  // the last one measured
  double unigram_entropy = 0;
  std::filesystem::path checkpoint;  // the newest
  bool interrupted = false;          // Ctrl-C came before the last step
};

TrainResult train(const RunConfig& run, const std::filesystem::path& out, Executor& executor);

}  // namespace sextant
