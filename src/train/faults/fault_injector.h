// FaultInjector: the faults of one rank, each struck once in the life of a run's directory. What has struck is written
// to OUT/injected-faults first, so that the run that goes on afterwards is left alone.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/rank_status.h"
#include "exec/executor.h"
#include "train/faults/fault.h"
#include "train/faults/op_fault.h"
#include "train/step_drill.h"

namespace sextant {

inline constexpr std::string_view kInjectedFaultsFile = "injected-faults";

class FaultInjector {
 public:
  struct Parts {
    const std::vector<Fault>& faults;  // of all ranks
    const std::filesystem::path& out;
    int ranks;
    Bound& bound;  // of this rank
    const RankStatus& rank_status;
    int64_t layers = 0;                                                // of the model
    bool local_checkpoints = false;                                    // whether there are any to lose
    std::function<void(int first, int count)> lose_local_checkpoints;  // that these ranks hold
  };
  // UserError for a fault that cannot strike in this run: no such rank, no collective to abort, no loss to spoil.
  explicit FaultInjector(const Parts& parts);

  // Executes the faults that are due on this rank before this step; may throw, and may not return.
  void before_step(int64_t step);

  // Delays this rank in every step, while the step is under way.
  void slow_down(RankStatus& rank_status) const;
  int64_t slow_input_ms() const { return slow_input_ms_; }

  StepDrill drill_of(int64_t step) const {
    return {.spoils_gradients = spoiled_step_ == step,
            .flips_gemm = step < flip_gemm_before_,
            .flips_message = step < flip_message_before_};
  }
  // Who must observe this step's ops; null: nobody.
  OpObserver* spoiled_op(int64_t step) { return op_fault_ && op_fault_step_ == step ? &*op_fault_ : nullptr; }
  // Whether a checkpoint of this step finds the disk full. From any thread.
  bool disk_is_full(int64_t step) const {
    return step >= disk_full_from_.load(std::memory_order_relaxed) &&
           step < disk_full_before_.load(std::memory_order_relaxed);
  }

 private:
  struct Pending {
    Fault fault;
    std::string id;  // its text, and a number where the same stands more than once
  };
  void remember(const Pending& pending) const;
  void leave_behind();
  void strike(const Fault& fault);
  void abort_in_collective();
  std::vector<ValueId> weights_of(const Fault& fault) const;

  Bound& bound_;
  const RankStatus& rank_status_;
  std::filesystem::path record_;
  std::vector<Pending> pending_;
  int64_t last_step_ = 0;
  int64_t spoiled_step_ = -1;
  int64_t flip_gemm_before_ = 0, flip_message_before_ = 0;
  std::optional<OpFault> op_fault_;
  int64_t op_fault_step_ = -1;
  int64_t layers_ = 0;
  // Weights that are multiplied before every step.
  struct Scaled {
    std::vector<ValueId> weights;
    float factor = 1;
  };
  std::vector<Scaled> scaled_;
  int64_t slow_ms_ = 0, slow_input_ms_ = 0, sum_delay_ms_ = 0;
  std::function<void(int first, int count)> lose_local_checkpoints_;
  std::atomic<int64_t> disk_full_from_{0}, disk_full_before_{0};
};

// The values of a save on a disk that is full: reading them fails as writing them would.
class FullDiskView final : public StateView {
 public:
  FullDiskView(const StateView& values, std::filesystem::path place) : values_(values), place_(std::move(place)) {}

  const Program& program() const override { return values_.program(); }
  int rank() const override { return values_.rank(); }
  void read(const Value& value, std::span<std::byte> destination, int64_t offset) const override;

 private:
  const StateView& values_;
  std::filesystem::path place_;
};

}  // namespace sextant
