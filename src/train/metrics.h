// metrics.jsonl: one line per step, in order, each step once. Opening it for a resumed run drops the lines of steps
// that will be run again. Its fields are one table (metric_fields), which docs/metrics.md shows.
#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "ckpt/disk.h"
#include "ckpt/still_there.h"
#include "train/tensor_statistics.h"

namespace sextant {

struct StepMetrics {
  int64_t step = 0;                     // counts from 1
  double loss = 0;                      // mean over the step's tokens, in nats
  std::optional<double> balance_loss;   // of experts, with its coefficient; added to `loss` in training
  std::optional<double> router_z_loss;  // likewise
  std::optional<double> mtp_loss;       // of multi-token prediction: mean over its depths, in nats, without its weight
  double grad_norm = 0;                 // of the loss, not of the scaled one
  std::optional<double> loss_scale;     // by which the step's loss was multiplied
  std::optional<double> norm_limit;     // above which the update is left out (train.spike), where there is one
  double lr = 0;
  int64_t tokens = 0;  // seen since the run's start
  double tokens_per_s = 0;
  double step_s = 0;
  // Where the time of the step went: of every rank, and of the leader's process.
  std::vector<double> own_s_by_rank, message_s_by_rank, input_s_by_rank;
  double processor_s = 0;
  double crowding = 0, crowded_out_s = 0;    // of the rank that has most (rank_times.h)
  double occupied = 0;                       // by the leader's process (rank_times.h)
  double model_flops = 0;                    // of the step, over all ranks (models/model_flops.h)
  std::optional<double> mfu;                 // null where no machine profile is known
  int64_t arena_bytes = 0;                   // of rank 0
  int64_t host_arena_bytes = 0;              // of rank 0, where something is offloaded
  int64_t nvme_arena_bytes = 0;              // of its file, where something is offloaded to one
  std::vector<int64_t> arena_bytes_by_rank;  // with the first step after a start
  // Of every layer with experts, in their order: ops/load_statistics.cpp.
  struct ExpertLoads {
    std::vector<double> peak, entropy;
    std::vector<int64_t> unused;
    std::vector<double> bias_least, bias_most;  // of the correction bias; empty where there is none
  };
  std::optional<ExpertLoads> expert_loads;
  // Where rows on their way to experts may find no place (mesh.expert_capacity).
  struct ExpertRows {
    int64_t lost = 0;            // of the first attempt, which changed nothing
    int64_t rounds = 1;          // in which it was done then
    int64_t needed = 1;          // that would have done
    int64_t repeated_steps = 0;  // since the start of the program, with this one
  };
  std::optional<ExpertRows> expert_rows;
  std::optional<int64_t> dropped_rows;      // slots that experts did not take (model.experts.drop_above)
  std::optional<double> grad_noise_scale;   // in tokens (noise_scale.h)
  std::optional<TensorStatistics> tensors;  // of measuring steps
  std::optional<double> validation_loss;    // on steps that end with an evaluation, in nats per token
  std::optional<double> bits_per_byte;      // the same loss per byte of text, where there is a tokenizer

  std::optional<double> perplexity() const {
    return validation_loss ? std::optional(std::exp(*validation_loss)) : std::nullopt;
  }

  bool is_finite() const { return std::isfinite(loss) && std::isfinite(grad_norm); }
  // By the update itself, on every rank.
  bool is_update_skipped() const { return !std::isfinite(grad_norm) || (norm_limit && grad_norm > *norm_limit); }
};

// A field of a line: its name there, what it is measured in, which lines have it, and what it says.
struct MetricField {
  std::string_view name, unit, when, about;
};

// In the order in which a line has them.
std::vector<MetricField> metric_fields();

class MetricsFile {
 public:
  // `resume_step`: the last step already done; 0 for a new run.
  MetricsFile(std::filesystem::path path, int64_t resume_step);
  bool is_there() const { return is_still_at(file_, path_); }  // false once it has been removed
  void append(const StepMetrics& metrics);  // RunError that says why, where the disk does not take it

 private:
  std::filesystem::path path_;
  Descriptor file_;
};

}  // namespace sextant
