// The report of `sextant plan`: parameters to the unit, memory to the byte, all read off the Programs that will run.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "passes/memory.h"
#include "plan/programs.h"

namespace sextant {

struct PlanReport {
  std::string architecture;
  int64_t parameters = 0;
  std::string mesh;
  int64_t ranks = 1;
  int64_t microbatches = 1;
  bool halved = false;  // weights are bf16, and their low halves part of the optimizer's state
  int64_t tokens_per_step = 0;
  MemoryUse train;          // of the training Program alone
  Bytes evaluation_extra;   // what evaluation needs beyond it
  Bytes arena;              // what `train` allocates on such a rank
  std::vector<Bytes> stage_arenas;  // and on the ranks of each pipeline stage; what is above is the largest of them
  Bytes snapshot;           // beside it: the copy from which checkpoints are written while training goes on
  std::map<std::string, int64_t> sent;  // by such a rank in a step, by the axes of the group
  Flops flops_per_step;     // executed, per rank, by the ops' own costs; attention counted causal
};

PlanReport plan_report(const RunConfig& run, const RunShape& shape, const Target& target);

std::string report_text(const PlanReport& report);
std::string report_json(const PlanReport& report);

}  // namespace sextant
