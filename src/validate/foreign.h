// From a published run to one of ours: the same model, mesh and batch as a RunConfig, the machine and the profile it
// ran on. What cannot be converted is reported; what a source left blank takes a default that is named.
#pragma once

#include <string>
#include <vector>

#include "config/run_config.h"
#include "cost/machine.h"
#include "cost/software_profile.h"
#include "models/spec.h"
#include "validate/published_run.h"

namespace sextant {

struct ForeignRun {
  RunConfig config;
  ModelSpec spec;
  std::string machine;  // a name of machines/
  SoftwareProfile profile;
  double expert_imbalance = 1;            // of the busiest rank against the mean, of tokens sent to experts
  std::vector<std::string> assumed = {};  // "recompute=none"
};

struct ConvertedRun {
  ForeignRun run;
  std::string why_not;  // not empty: it cannot be converted
};

ConvertedRun to_run_config(const PublishedRun& row, const std::vector<SoftwareProfile>& profiles);

// The machine file for a device as sources write it; empty when there is none.
std::string machine_for_gpu(std::string_view gpu);

}  // namespace sextant
