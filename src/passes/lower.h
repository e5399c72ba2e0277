// lower: from a model's Graph to the Program that runs. lower.cpp lists the passes in order.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/plan.h"
#include "ir/program.h"
#include "optim/loss_scaling.h"
#include "passes/measure_tensors.h"
#include "passes/quantize.h"
#include "passes/update.h"
#include "schedule/pipeline.h"

namespace sextant {

// When the rules of the IR are checked (ir/verify.h). A search lowers the same model hundreds of times and checks what
// it keeps.
enum class Checks : uint8_t { each_pass, end, none };

struct LowerOptions {
  Plan plan;
  std::optional<Optimizer> train;  // with it: backward and update; without: forward only (evaluate, generate)
  double check_gemms = 0;          // share of the matrix products that are checked (check_gemms.h)
  Quantization quantization = {};
  std::optional<LossScaling> loss_scaling = {};  // of training
  TensorMeasures measures = {};                  // of training
  const std::vector<Program>* beside = nullptr;  // whose arenas these share (memory.h), one per pipeline rank
  // The order of work over pipeline stages, all microbatches included. Without it there is one stage, and a microbatch
  // is finished before the next begins.
  std::optional<PipelineSchedule> pipeline = {};
  std::vector<int> blocks_per_stage = {};  // empty: balanced by cost
  Checks checks = Checks::each_pass;
  // Called after every pass with its name and a function that prints the IR as it stands. With a pipeline, passes from
  // partition on run once per pipeline rank.
  std::function<void(std::string_view pass, const std::function<std::string()>& text)> observe = {};
};

// One Program per pipeline rank: ranks that differ only along other axes run the same one.
std::vector<Program> lower_all(Graph graph, const Target& target, const LowerOptions& options);

// The only Program of a Graph without pipeline.
Program lower(Graph graph, const Target& target, const LowerOptions& options);

// The passes in order, as `observe` will name them.
std::vector<std::string_view> pass_names();

}  // namespace sextant
