// simulate: walks the Programs of all pipeline ranks through one step, as executors do: a compute lane and a comm lane
// per rank, messages between stages, the same order and the same waits. Where an executor calls a kernel, it asks for a
// price. Ranks that differ only along other axes run alike, so one of each class stands for all.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/trace.h"
#include "cost/price.h"
#include "ir/program.h"

namespace sextant {

// How one pipeline rank spent the step, in seconds. The parts sum to the step.
struct RankTime {
  double compute = 0;                     // kernels of the model, forward and backward
  double update = 0;                      // norm, clipping, optimizer
  std::map<std::string, double> exposed;  // waiting for messages, by axes; the pipeline's: for the transfer itself
  double bubble = 0;                      // waiting for other stages
  double host = 0;                        // waiting for the host to issue work
  double total() const;
};

struct SimResult {
  double seconds = 0;
  std::vector<RankTime> ranks;  // by pipeline rank
  int slowest = 0;              // the rank that was idle least
  Trace trace;                  // when asked for
};

enum class KeepTrace : uint8_t {
  no,
  yes,     // an event for each op
  passes,  // of each pass of a microbatch through a region one for compute and one for the messages along each axis,
           // one behind the other: enough for a small picture, and far fewer
};

struct SimOptions {
  KeepTrace trace = KeepTrace::no;
  double straggler = 1;  // every device's kernels take this many times as long; messages do not
  double jitter = 0;     // standard deviation of an op's time, as a share
  uint64_t seed = 1;
};

SimResult simulate(std::span<const Program> programs, Pricer& pricer, const SimOptions& options = {});

}  // namespace sextant
