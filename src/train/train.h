// train: runs the Program of a config, step by step, and keeps what it learns. Everything the run leaves is under `out`:
// config.toml, metrics.jsonl and step-NNNNNN/ checkpoints.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
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

// Makes the executor of one rank, with as many threads as are its share.
using MakeExecutor = std::function<std::unique_ptr<Executor>(const RankSeat& seat, int threads)>;

// All ranks of the run's mesh, as threads of this process.
TrainResult train(const RunConfig& run, const std::filesystem::path& out, const MakeExecutor& make_executor);

}  // namespace sextant
