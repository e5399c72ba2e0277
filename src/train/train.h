// train: runs the Program of a config, step by step, and keeps what it learns. Everything the run leaves is under
// `out`: config.toml, metrics.jsonl, heartbeat/ and step-NNNNNN/ checkpoints (docs/running.md lists all).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/exit_code.h"
#include "base/verbosity.h"
#include "comm/ranks.h"
#include "config/run_config.h"
#include "exec/executor.h"
#include "train/faults/fault.h"
#include "train/monitor.h"
#include "train/rate_range_test.h"

namespace sextant {

struct TrainResult {
  int64_t step = 0;
  double loss = 0;                        // of the last step
  std::optional<double> validation_loss;  // the last one measured
  std::optional<double> bits_per_byte;    // the same per byte of text, where there is a tokenizer
  std::optional<double> unigram_entropy;  // of the validation data, where a comparison with it says something
  std::filesystem::path checkpoint;       // the newest
  ExitCode outcome = ExitCode::finished;  // or stopped on request, or non_finite; anything else is thrown
  std::vector<RatePoint> rates;           // of a range test
};

// Makes the executor of one rank, with as many threads as are its share.
using MakeExecutor = std::function<std::unique_ptr<Executor>(const RankContext& context, int threads)>;

// A step whose ops are timed one by one, and who gets to see the times: on rank 0, after the step.
struct Profile {
  int64_t step = 0;  // 0: none
  std::function<void(const Trace& trace, Executor& executor)> take = {};
};

enum class Beginning : uint8_t { fresh, resumed };

// Options of one invocation of a run, in addition to its config.
struct TrainView {
  Profile profile = {};
  int64_t until = 0;            // the run saves and stops behind this step; 0: it goes on to its end
  std::string supervisor = {};  // of which the run is an attempt, by the name in its lock; empty: none
  Verbosity verbosity =
      Verbosity::usual;               // quiet: nothing; verbose: a line for every step, whatever train.log_every says
  std::optional<RateRamp> ramp = {};  // a learning-rate range test: these rates in place of the config's
  std::vector<MakeMonitor> monitors = {};  // in addition to those of every run
  // Called once by the leader, when the directory of the run is ready and the first step follows. Says what all devices
  // together do at most, in FLOP/s, where that is known: MFU is a part of it.
  std::function<std::optional<double>(Beginning beginning)> on_begin = {};
};

// The ranks of the run's mesh that are this process's to run: by default all, as threads. Only the process of rank 0
// prints, and only its result has meaning. `faults` are drills (fault_injector.h), beside those of SEXTANT_FAULT.
TrainResult train(const RunConfig& run, const std::filesystem::path& out, const MakeExecutor& make_executor,
                  const Launch& launch = {}, const TrainView& view = {}, const std::vector<Fault>& faults = {});

}  // namespace sextant
