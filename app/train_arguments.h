// The options of `sextant train`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/verbosity.h"

namespace sextant {

struct TrainArguments {
  std::string config;
  std::vector<std::string> overrides;
  std::string out;                  // empty: runs/NAME
  int64_t ranks = 0;                // how many the mesh must have; 0: any
  int64_t profile = 0;              // the step to time op by op; 0: none
  int64_t until = 0;                // stop behind this step; 0: behind the last
  double minutes = 0;               // how long to train: chooses train.steps; 0: as the config says
  std::vector<std::string> inject;  // faults on purpose
  std::string supervised_by;        // by `sextant run`, which holds the directory
  std::string rates;                // of --find-lr: LOW:HIGH[:STEPS]; empty: the defaults
  Verbosity verbosity = Verbosity::usual;
  bool json = false;  // of the result; progress is not printed then
};

}  // namespace sextant
