// The ranks of a benchmark: processes of mpirun or srun, or threads of this one; Ctrl-C ends it with what there is, and
// a line on the terminal shows the progress.
#pragma once

#include <functional>
#include <string>

#include "app/bench_progress.h"
#include "app/processes.h"
#include "bench/comm/comm_world.h"
#include "bench/stop.h"
#include "train/health/stop.h"

namespace sextant {

std::string host_name();

class RankBench {
 public:
  RankBench(Processes& processes, Verbosity verbosity);

  // As many as were started, or so many threads.
  int ranks_or(int threads) const { return launch_.process ? launch_.process->size() : threads; }
  // UserError when --ranks asks for threads where a launcher has started processes.
  void refuse_ranks(int64_t asked) const;
  bool leads() const { return launch_.leads(); }
  const Watch& watch() const { return watch_; }
  void run(int ranks, const std::function<void(CommWorld& world)>& work);

 private:
  Launch launch_;
  StopRequest stop_;
  ProgressLine progress_;  // rank 0 prints
  Watch watch_;
};

}  // namespace sextant
