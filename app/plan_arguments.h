// The options of `sextant plan`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/planned_target.h"
#include "base/verbosity.h"

namespace sextant {

struct PlanArguments {
  std::string config;
  std::vector<std::string> overrides;
  bool json = false;
  TargetOptions target;
  std::string html;               // a file to write
  std::vector<std::string> vary;  // for the page: "batch.seq=4096,8192"
  int64_t layouts = -1;           // for the page, of a search; -1: not given
  std::string trace;              // the simulated step, for Perfetto
  std::string timeline;           // SVG files to draw into
  std::string memory_timeline;
  std::string mesh;
  double straggler = 1, jitter = 0;
  std::string imbalance;  // of tokens among the ranks of experts; empty: balanced
  std::string tokens;     // the budget of the run
  Verbosity verbosity = Verbosity::usual;
};

}  // namespace sextant
