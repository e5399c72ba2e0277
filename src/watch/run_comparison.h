// Two runs side by side: is one better, and by how much more than its noise?
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/changes.h"
#include "watch/loss_basis.h"
#include "watch/run_columns.h"
#include "watch/seed_noise.h"
#include "watch/watched_run.h"

namespace sextant {

// The mean of a loss over the steps up to some number of tokens or FLOPs, with the standard error of that mean.
struct LossEstimate {
  double tokens = 0;       // at the end of the window
  double mean = 0;         // of the window
  double error = 0;        // standard error of the mean, with the autocorrelation of the residuals counted in
  size_t steps = 0;        // of the window
  double independent = 0;  // steps that tell as much as those, were each independent
};

struct PlaceOnAxis {
  XAxis axis = XAxis::tokens;
  double x = 0;
};
// Over the last `steps` steps that end at this place or before. The residuals are those of a straight line through the
// window: what the loss falls by within it is no noise. Nothing where fewer than 8 steps are there.
std::optional<LossEstimate> loss_at(const RunColumns& run, PlaceOnAxis end, size_t steps);

// In another measure: of a few steps, between which it is interpolated, with the relative error of one step's loss of
// training there. Both runs measure the same text, so that their difference has less noise than that.
std::optional<LossEstimate> measured_at(const RunColumns& run, LossMeasure measure, PlaceOnAxis end, size_t steps);

struct RunFigures {
  std::string name;
  double tokens = 0, seconds = 0;
  std::optional<double> flops;  // of the model
  int64_t steps = 0;
  std::optional<LossEstimate> final_loss;
  std::optional<double> validation_loss;  // the last one
  std::optional<double> bits_per_byte;    // with it
  double tokens_per_s = 0;                // median
};

enum class ComparisonVerdict : uint8_t { better, worse, no_difference, unknown };
std::string_view name_of(ComparisonVerdict verdict);

// The losses of both at the FLOPs that both have reached.
struct EqualFlops {
  double flops = 0;
  LossEstimate a, b;
  double difference() const { return b.mean - a.mean; }
};

// Tokens, time in steps and FLOPs that a run used until it reached a loss.
struct LossReached {
  double tokens = 0, seconds = 0;
  std::optional<double> flops;
};

// Of B against A.
struct RunComparison {
  RunFigures a, b;
  std::vector<ConfigChange> config;              // keys that differ
  std::string config_remark;                     // why there is no list of keys; empty: there is
  LossBasis basis;                               // what is compared; nothing: there is no verdict
  std::optional<LossEstimate> equal_a, equal_b;  // at the tokens that both have reached
  double difference = 0, error = 0;              // of B less A at equal tokens, and its standard error:
  double curve_error = 0, seed_error = 0;        // of the curves, and where the seeds differ of another seed
  SeedNoise seeds = {};
  std::optional<EqualFlops> equal_flops;  // where a token takes another number of FLOPs in B than in A
  ComparisonVerdict verdict = ComparisonVerdict::unknown;
  std::optional<double> reached_loss;  // the higher of the two final losses, which both reach
  std::optional<LossReached> a_reached, b_reached;

  std::string sentence() const;
};

// Steps that a loss is the mean of: `wanted`, or with 0 a twentieth of the shortest run, 20 to 1000, and no more than
// half of it.
size_t comparison_window(const std::vector<const WatchedRun*>& runs, size_t wanted);

// The runs are read. `window`: as above.
RunComparison compare_runs(const WatchedRun& a, const WatchedRun& b, size_t window = 0, const SeedNoise& seeds = {});

// All others with the first; what seeds do is measured on all of them.
std::vector<RunComparison> compare_with_first(const std::vector<const WatchedRun*>& runs, size_t window = 0);

// Text and JSON of comparisons with one first run.
std::string comparison_text(const std::vector<RunComparison>& comparisons);
std::string comparison_json(const std::vector<RunComparison>& comparisons);

}  // namespace sextant
