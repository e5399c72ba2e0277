// A grid of plans around a run: other numbers of devices, batches, contexts and layouts, every combination a real plan
// or a reason why there is none. Each is what `sextant plan` says of the config with the overrides of its point.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "answers/question_change.h"
#include "base/trace.h"
#include "config/run_config.h"
#include "cost/machine.h"
#include "cost/software_profile.h"
#include "ir/plan.h"
#include "plan/run_plan.h"

namespace sextant {

struct GridAxis {
  std::string name;  // "devices", "layout" or a key of the config
  std::vector<std::string> values;
  size_t chosen = 0;  // what the config itself has
};

struct GridPoint {
  std::vector<std::string> overrides;  // behind those that were given: what gives this plan
  std::string why_not;                 // where there is no plan
};

struct PlanGrid {
  std::vector<GridAxis> axes;
  std::vector<GridPoint> points;  // every combination, the last axis fastest

  size_t chosen() const;  // the point that is the config itself
};

// One plan of the grid, while it is there.
struct GridPlan {
  size_t point = 0;
  const RunPlan& plan;
  const LoweredRun& lowered;
  const Trace& trace;  // of the simulated step; empty without one
};

// Layouts that are next to the config's, or so many that a search finds fastest for the config's devices and batch.
inline constexpr int64_t kNeighbouringLayouts = -1;
inline constexpr int64_t kMostGridLayouts = 24;
inline constexpr size_t kMostGridPlans = 5000;

struct PlanGridRequest {
  std::string config;                  // a file
  std::vector<std::string> overrides;  // given behind it
  const RunConfig& run;                // both together
  const ModelSpec& spec;
  const Machine* machine = nullptr;  // null: no times
  const SoftwareProfile& profile;
  std::function<Target(const RunConfig& run, int ranks)> target;
  double token_budget = 0;
  ExpertImbalance imbalance = {};
  SimOptions simulation = {};
  const IntervalModel* intervals = nullptr;
  std::vector<QuestionChange> vary;  // devices and keys of the config; without these, values around the config's
  int64_t layouts = kNeighbouringLayouts;
  std::function<void(const GridPlan&)> keep;  // called from several threads at once, once for each plan
};

// UserError for what cannot be varied so; what a single point refuses stands at that point.
PlanGrid plan_grid(const PlanGridRequest& request);

}  // namespace sextant
