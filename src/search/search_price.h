// One layout, lowered whole and simulated.
#pragma once

#include <optional>

#include "search/search.h"

namespace sextant {

struct PriceRequest {
  const ModelSpec& spec;
  const Machine& machine;
  const SoftwareProfile& profile;
  const Target* target = nullptr;          // null: an accelerator under the profile
  ExpertImbalance imbalance = {};          // where ranks divide experts
  std::optional<double> limit_bytes = {};  // that a rank may need; none: what the device has
};

Target target_of(const RunConfig& config, const PriceRequest& request);

// Evaluation, which a run may have beside training, is left out: it needs less.
RunConfig without_evaluation(RunConfig run);

// UserError where the layout is none. The rules of the IR are not checked, which would take most of the time.
Candidate price_layout(const RunConfig& config, const PriceRequest& request);

// The candidate as `plan` tells it: with evaluation, where the run has one, and with what the whole run takes.
void settle(Candidate& candidate, const PriceRequest& request, double token_budget);

// Checks them.
void verify_layout(const Candidate& candidate, const PriceRequest& request);

// Where the time goes, and what a candidate loses against the best.
std::string why_of(const Candidate& candidate);
std::string hurts_of(const Candidate& candidate, const Candidate& best);

}  // namespace sextant
