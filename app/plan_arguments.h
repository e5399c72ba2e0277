// The options of `sextant plan`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/verbosity.h"

namespace sextant {

struct PlanArguments {
  std::string config;
  std::vector<std::string> overrides;
  bool json = false;
  std::string machine;            // a name of machines/ or a file; empty: none, and no times
  std::string profile;            // whose software; empty: ours
  std::string report;             // an HTML file to write
  std::vector<std::string> vary;  // for the page of a plan: "batch.seq=4096,8192"
  int64_t layouts = -1;           // for it, of a search; -1: not given
  std::string trace;              // the simulated step, for Perfetto
  std::string timeline;           // SVG files to draw into
  std::string memory_timeline;
  std::string mesh;
  bool hold_out = false;  // with validate
  bool memory = false;    // with hold_out: of memory in place of step times
  bool search = false;
  std::vector<std::string> only;  // for the search: "zero=0,1"
  std::string headroom;           // for the search: "5%"; empty: by what is known of the software's memory
  int64_t devices = 0;            // for the search; 0: as many as the config's mesh has
  std::string validate;           // a CSV file of published runs
  bool calibrate = false;
  std::string published;  // how names of configs of configs/published begin, or all
  std::string write;      // a TOML file for the config with the layout that was found best; of hold_out a CSV file
  std::string compute, tokens, params, inference_tokens,
      fit;  // scaling laws; with a config, `tokens` is the run's budget
  double straggler = 1, jitter = 0;
  std::string imbalance;            // of tokens among the ranks of experts; empty: balanced
  bool serve = false;               // what generating text takes, in place of training
  int64_t prompt = 0, context = 0;  // 0: not given
  Verbosity verbosity = Verbosity::usual;
  std::vector<std::string> given;  // names of the options on the command line
  std::string command;             // all of it, as text
};
void validate_verb(const PlanArguments& arguments);

}  // namespace sextant
