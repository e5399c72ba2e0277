// StepObserver: summarizes everything that the ops of one rank make in a step.
#pragma once

#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "replay/output_summary.h"

namespace sextant {

// One output of one run of an op on one rank.
struct ObservedOutput {
  int64_t order = 0;  // over all ranks: whatever it was made from has a smaller one
  int rank = 0;
  Action action;
  std::string op, kind;  // the op's path and name
  int output = 0;        // which of its outputs
  std::string value;     // path
  Phase phase = Phase::forward;
  int layer = -1;  // -1: outside of the repeated blocks
  DType dtype = DType::f32;
  GlobalShape shape;
  bool summed = false;  // over microbatches: the last one has the sum
  bool shares_sum =
      false;  // other ops add to it too, as to the gradient of a tied embedding; which ones, depends on the mesh
  bool counted = false;     // over ranks that hold the same, this is the one whose fingerprint counts
  bool additive = true;     // the parts of ranks add up to the whole: not so maxima
  int stage_rank = 0;       // the rank's place in the pipeline
  bool stage_part = false;  // pipeline ranks that all run the op have parts of the output, not the same
  OutputSummary summary;
};

class StepObserver final : public OpObserver {
 public:
  // The Program and the counter, which all ranks share, must outlive it.
  StepObserver(const Program& program, int rank, std::atomic<int64_t>& order);

  void after(const OpRun& run) override;
  std::vector<ObservedOutput> take() { return std::move(seen_); }

 private:
  bool is_counted(const Value& value) const;
  bool is_additive(const Value& value) const;
  bool is_stage_part(const Value& value) const;
  bool outlasts_microbatch(const Value& value) const;
  void find_shared_sums();

  const Program& program_;
  int rank_;
  Coordinate at_;
  std::atomic<int64_t>& order_;
  std::vector<ObservedOutput> seen_;
  std::set<const Op*> sharing_;  // the ops that add onto a sum which is not theirs alone
};

}  // namespace sextant
