// measure_tensors: adds what a run measures of its tensors while it trains, and nothing is trained on: statistics of
// each layer (log.tensor_stats_every), and the gradients of the first microbatch for the gradient noise scale
// (log.grad_noise_scale). Sums and maxima over the microbatches of a step are tallies, those of weights and updates
// fetches (passes/update.h). Each is in the layout that its tensor's gives it: P or P(max) along axes whose ranks hold
// other parts, so whoever reads them adds up, or takes the largest, over ranks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "ir/graph.h"
#include "ir/program.h"

namespace sextant {

struct TensorMeasures {
  bool statistics = false;
  std::optional<DType> format = {};  // in which underflow and overflow are counted; none: the one each value has
  bool noise_scale = false;
};

// One value of a Program that holds measured numbers. A layer may have several of a kind, to be joined.
struct Measurement {
  Measured measured;
  const Value* value = nullptr;
};
std::vector<Measurement> measurements_in(const Program& program);

// A name for such a value: "measured.3.weight.sums.layers.3.mlp.up". What it holds is told by Value::measured.
std::string measured_path(const Measured& measured, const std::string& of);

// Squares of the parts of gradients of the first microbatch that a rank makes alone.
struct SmallGradients {
  std::map<ValueId, ValueId> squares;  // by parameter: the tally's value
};
inline constexpr std::string_view kSmallSquaresPath = "noise.small", kFullSquaresPath = "noise.full";

// In how many parts the ranks cut a microbatch, each with a gradient of its own; 0 where none is measured.
int64_t small_gradient_parts(const Program& program);

// Before the update is appended.
SmallGradients measure_tensors(Graph& graph, const TensorMeasures& measures);

}  // namespace sextant
