// From traces to a table of measured ops. In: Programs and the events of each rank's steps. Out: for each op's name and
// size (cost/measured_ops.h) what it took. A message takes what it took on the rank that came last to it: the others
// waited.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "bench/step_bench.h"
#include "cost/machine.h"

namespace sextant {

class OpSamples {
 public:
  // Programs whose messages travel on the compute lane (mesh.overlap = false): others are not in the traces.
  void add(const LoweredRun& lowered, const StepTimes& times);
  void add(const std::string& name, std::vector<double> size, double seconds) {
    samples_[name][std::move(size)].push_back(seconds);
  }

  // The lower quartile of each: what an undisturbed op takes.
  std::map<std::string, std::vector<MeasuredOp>> table() const;

 private:
  std::map<std::string, std::map<std::vector<double>, std::vector<double>>> samples_;
};

}  // namespace sextant
