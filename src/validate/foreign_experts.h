// The configuration of a published run of a model with experts: the model, of which tables give part, and the meaning
// of its words about precision, dispatch and recompute for its profile.
#pragma once

#include <string>
#include <vector>

#include "cost/software_profile.h"
#include "models/spec.h"
#include "validate/published_run.h"

namespace sextant {

struct PublishedExperts {
  ModelSpec spec;
  std::vector<std::string> assumed = {};
  std::string why_not = {};  // not empty: the model cannot be expressed
};

// The released model that the row names, with the sizes that the row has; else the plainest of its architecture.
PublishedExperts experts_published_as(const PublishedRun& row);

// How many times the mean the busiest rank gets: 1 where routing was forced to be balanced, or excess tokens dropped.
double imbalance_published_as(const PublishedRun& row);

// Layers of each stage as Megatron divides them, which does not look at their cost: the same in all; where that does
// not go, embedding and loss counted as a layer each; else as many as fill all but the last stage.
std::vector<int64_t> layers_of_stages(int64_t layers, int64_t stages);

// The profile with what the row says of how tokens travel and what is computed again.
void apply_words_of_experts(const PublishedRun& row, SoftwareProfile& profile);

}  // namespace sextant
