// RunPlan: everything `sextant plan` knows about a run, read off the Programs that will run and the simulator's walk
// through them. Text, JSON and the HTML report are written from this one record.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "cost/machine.h"
#include "cost/software_profile.h"
#include "ir/plan.h"
#include "laws/economics.h"
#include "models/model.h"
#include "ops/fp8_recipe.h"
#include "plan/expert_imbalance.h"
#include "plan/memory_fit.h"
#include "plan/memory_moments.h"
#include "plan/predict.h"
#include "plan/prediction_interval.h"

namespace sextant {

struct ParameterCount {
  std::string part;  // "embed", "layers (each)", "head"
  int64_t each = 0;
  int64_t times = 1;
};

struct StepTime {
  double seconds = 0;
  double compute_s = 0, update_s = 0, bubble_s = 0, host_s = 0;  // of the rank that is idle least
  std::map<std::string, double> exposed_comm_s;                  // by axes
  double mfu = 0, hfu = 0;                                       // of the device's dense peak; attention causal
  double tflops_per_device = 0;
  double tokens_per_s_per_device = 0;
  std::optional<PredictionInterval> interval;  // of the seconds, where it was asked for
};

// Bytes that a rank keeps in the memory of the host.
struct HostParts {
  int64_t weights = 0;      // that are streamed to the device
  int64_t optimizer = 0;    // state, and the bits of weights that only the update reads
  int64_t activations = 0;  // saved for backward
  int64_t passing = 0;      // gradients and weights of the update, state that is in a file, and gaps between buffers
  // The allocation of `train` on the host, to the byte.
  int64_t total() const { return weights + optimizer + activations + passing; }
};

struct RankClass {
  int stage = 0;
  MemoryParts memory;
  int64_t arena_bytes = 0;  // what `train` allocates, to the byte
  std::string peak_at;      // path of the op where it is fullest
  RegionKind peak_in = RegionKind::forward;
  HostParts host = {};
  int64_t nvme_bytes = 0;  // of the file that `train` makes, to the byte
};

// Rows that the tokens of a rank have for the experts of each rank that experts are divided among.
struct ExpertRowsPlan {
  ExpertDispatch dispatch = ExpertDispatch::rows;
  int64_t capacity = 0;
  int64_t most = 0;    // that any routing asks for
  int64_t copies = 0;  // of tokens that travel for them
  int64_t rounds = 1;  // in which a step is repeated that asks for more
};

struct RunPlan {
  std::string architecture, mesh, machine, device, profile;
  int64_t parameters = 0;
  ActiveParameters active;
  std::vector<ParameterCount> by_part;
  int64_t ranks = 1, microbatches = 1, tokens_per_step = 0;
  std::string optimizer;         // by name
  DType weights = DType::f32;    // what they are computed with in: f32, bf16, f16
  bool masters = false;          // what these lack of their f32 is part of the optimizer's state
  int64_t states_kept_wide = 0;  // weights of such a rank whose states are f32, since the mesh cuts their blocks
  FlopsPerToken flops;
  std::optional<ExpertRowsPlan> expert_rows;        // where ranks divide experts
  std::vector<RankClass> classes;                   // one per pipeline stage
  int64_t peak_bytes = 0;                           // of the largest
  int64_t local_copies = 0, local_copies_held = 0;  // bytes on the host; the second for a rank of another host
  int64_t evaluation_extra = 0, repeat_extra = 0, snapshot = 0;  // bytes; the first two beyond a step of training
  std::optional<double> device_bytes;                            // with a machine
  int64_t host_bytes = 0;                                        // in the host's memory, of the rank with most there
  std::optional<double> host_room;                               // of a rank there, with a machine that says so
  int64_t nvme_bytes = 0;                                        // on NVMe, of the rank with most there
  std::optional<double> nvme_room;                               // of a rank there, with a machine that says so
  std::map<std::string, int64_t> sent;                           // by a rank of the largest class in a step, by axes
  std::optional<ExpertImbalance> imbalance;                      // assumed for the step, where ranks divide experts
  std::optional<StepTime> step;                                  // with a machine that it fits
  std::optional<Economics> economics;                            // likewise

  MemoryBasis memory_basis = MemoryBasis::exact;
  const BlockFormat* format = nullptr;  // that linears of blocks are priced in; null: what they run in
  double format_peak = 0, bf16_peak = 0;
  std::optional<MemoryInterval> memory_interval;  // of the largest, where it is an estimate and errors are known
  double kept_free = 0;                           // of the device, which its software's allocator needs

  MemoryFit device_fit() const {
    return device_bytes ? memory_fit(static_cast<double>(peak_bytes), *device_bytes - kept_free, memory_interval)
                        : MemoryFit::fits;
  }
  // It may: a plan that is not known to be too large has times.
  bool fits_device() const { return device_fit() != MemoryFit::does_not_fit; }
  bool fits_host() const { return !host_room || static_cast<double>(host_bytes) <= *host_room; }
  bool fits_nvme() const { return !nvme_room || static_cast<double>(nvme_bytes) <= *nvme_room; }
  bool fits() const { return fits_device() && fits_host() && fits_nvme(); }
};

struct PlanRequest {
  const RunConfig& run;
  const LoweredRun& lowered;
  const Machine* machine = nullptr;          // null: no times
  const SoftwareProfile* profile = nullptr;  // with a machine
  double token_budget = 0;                   // 0: steps × batch
  ExpertImbalance imbalance = {};            // of models whose ranks divide experts
  SimOptions simulation = {};
  const IntervalModel* intervals = nullptr;  // null or empty: no interval
};

// `result`, when given, receives the simulated step. What does not fit the machine would not run: it has no times and
// is not simulated.
RunPlan make_plan(const PlanRequest& request, SimResult* result = nullptr);

std::string plan_text(const RunPlan& plan);
std::string plan_json(const RunPlan& plan);

}  // namespace sextant
