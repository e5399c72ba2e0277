// The ops of a run beside its plan: what plan.json predicts for each, what the steps that were timed op by op
// (ops/rank-N.jsonl) took, which op is slower than it should be, on which rank, and since which step.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "watch/answer_body.h"

namespace sextant {

// Prediction for a step in plan.json.
struct PlannedStep {
  std::string machine;
  double seconds = 0;
};
// Of the text of plan.json, which is one line. Nothing where it is no plan, or one without a time.
std::optional<PlannedStep> planned_step_in(std::string_view line);

// One op of the model, all layers and microbatches of a step together, on the ranks of one pipeline stage.
struct ComparedOp {
  int64_t stage = 0;
  std::string op, path;
  int64_t count = 0;
  std::optional<double> predicted_s;
  std::optional<double> measured_s;   // the median over ranks, of the last timed steps
  std::optional<int64_t> rank;        // that is slower than the others
  std::optional<double> rank_s;       // its time
  std::optional<int64_t> since_step;  // the first timed step at which it was as slow as now, where it was faster before
  bool is_message = false;            // its time has the waiting for other ranks in it

  // Of the slowest rank over the prediction; where there is none, over the time before.
  std::optional<double> slowdown;
};

struct OpComparison {
  std::optional<PlannedStep> plan;
  std::vector<int64_t> steps;   // that were timed
  int64_t ranks = 0;            // that timed them
  std::vector<ComparedOp> ops;  // what takes longest beyond its prediction first
};
// Of a long run some of the steps, spread over it, and the last ones.
OpComparison compare_ops(const std::filesystem::path& run);
// Of the text of plan.json and the lines of ops/rank-N.jsonl; what is neither counts as nothing.
OpComparison compare_op_lines(std::string_view plan, const std::vector<std::string>& times);

std::string op_comparison_json(const OpComparison& comparison);
BodyPieces op_comparison_pieces(const std::filesystem::path& run);  // the same of a run, while others are answered
// A table of the first `most` rows and a sentence on each op that is slower than it should be; empty where there is
// nothing to compare.
std::string op_comparison_text(const OpComparison& comparison, size_t most = 12);

}  // namespace sextant
