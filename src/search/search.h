// search_layouts: which layouts of a run on so many devices fit their memory, and which of those are fastest. Bounds
// from small Programs (search_bound.h) put the layouts in order; the first of them are lowered whole and simulated,
// until no bound is below the worst that is kept. So the best are the best of all that were looked at, and every figure
// is a real Program's. Where nothing fits, the same with more and more offloaded (offload_rungs.h).
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.h"
#include "cost/machine.h"
#include "cost/software_profile.h"
#include "ir/plan.h"
#include "laws/economics.h"
#include "models/spec.h"
#include "plan/expert_imbalance.h"
#include "plan/headroom.h"
#include "plan/prediction_interval.h"
#include "search/layout_limits.h"
#include "search/search_space.h"

namespace sextant {

enum class SearchScope : uint8_t {
  whole,    // also the front of memory against time and, where nothing fits, how many devices would do
  fastest,  // neither
};

struct SearchRequest {
  const RunConfig& run;  // mesh, pipeline, microbatch and recompute are what is searched
  const ModelSpec& spec;
  const Machine& machine;
  const SoftwareProfile& profile;
  int64_t devices = 1;
  size_t keep = 10;
  LayoutLimits limits = {};
  const Target* target = nullptr;            // null: an accelerator under the profile
  double token_budget = 0;                   // of the whole run, for days and cost of the best; 0: not asked
  ExpertImbalance imbalance = {};            // of layouts whose ranks divide experts
  int threads = 0;                           // 0: one per core
  const IntervalModel* intervals = nullptr;  // null: nothing is called equal
  std::optional<double> headroom = {};       // share of a device's memory that stays free; none: by plan/headroom.h
  double known_to_fit_bytes = 0;             // as much may be needed, whatever else is known
  SearchScope scope = SearchScope::whole;
  double below_seconds = std::numeric_limits<double>::infinity();  // layouts that take as long are not looked for
  std::function<void(std::string_view)> progress = {};
};

// How the step of the rank that is idle least passes, in seconds.
struct StepParts {
  double compute = 0, update = 0, bubble = 0, host = 0;
  std::map<std::string, double> exposed;  // waiting for messages, by axes
};

struct Candidate {
  LayoutChoice choice;
  RunConfig config;
  std::string overrides;  // behind the run's config they give this layout (layout_overrides.h)
  double seconds = 0;
  int64_t peak_bytes = 0;                  // of the rank that needs most, with what lies outside the arena
  int64_t host_bytes = 0, nvme_bytes = 0;  // of the rank that has most there
  double lacking_bytes = 0;                // of these, for which host and disks have no room
  double mfu = 0;
  double tokens_per_s_per_device = 0;
  StepParts parts;
  std::string why;                     // where its time goes
  std::string hurts;                   // against the best: the first thing that costs it
  bool fits = true;                    // device, host and its disks, and leaves the headroom free
  bool fits_device = true;             // of that, the device
  MemoryFit fit = MemoryFit::fits;     // of its device, whatever the headroom
  std::string dominated;               // where its step goes (plan/prediction_interval.h)
  bool equals_best = true;             // the fastest is not known to be faster; without intervals of the fastest alone
  std::optional<Economics> economics;  // of the best and of the front, with a token budget
};

struct SearchCounts {
  size_t considered = 0;
  size_t too_large = 0;    // by their bound, never lowered
  size_t too_slow = 0;     // by their bound, never lowered
  size_t priced = 0;       // lowered whole and simulated
  size_t did_not_fit = 0;  // of those
};

struct SearchResult {
  std::string model, machine, device, profile;
  int64_t devices = 0, sequences = 0, seq = 0;
  double device_bytes = 0;
  Headroom headroom;
  std::optional<MemoryInterval> memory_interval;  // where memory is an estimate
  std::optional<ExpertImbalance> imbalance;       // of a model with experts
  std::vector<Candidate> best;                    // that fit, fastest first
  std::vector<Candidate> pareto;  // that fit: each needs less memory than all that are faster; fastest first
  std::optional<PredictionInterval> interval;  // of the fastest
  SearchCounts counts;
  double search_seconds = 0;
};

// Of the best and of the front, time and memory are what make_plan says of their configs. UserError when no layout is
// possible, DoesNotFit when none fits, with what would. `best` is empty where layouts may fit and none is below
// `below_seconds`.
SearchResult search_layouts(const SearchRequest& request);

// Of all layouts, with as much offloaded as it takes to fit, the one that needs least memory; none where there is no
// layout at all. It may not fit.
std::optional<Candidate> smallest_layout(const SearchRequest& request);

// The given layouts, priced whole, fastest first; those that do not fit come last.
std::vector<Candidate> rank_layouts(const std::vector<RunConfig>& layouts, const SearchRequest& request);

std::string search_text(const SearchResult& result);
std::string search_json(const SearchResult& result);

}  // namespace sextant
