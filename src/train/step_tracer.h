// StepTracer: which steps have their ops timed one by one (log.profile_every, and the one step of TrainView::profile),
// and where the times go.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/trace.h"
#include "comm/host_group.h"
#include "exec/executor.h"
#include "train/train.h"

namespace sextant {

class StepTracer {
 public:
  StepTracer(const std::filesystem::path& out, int64_t every, const Profile& profile)
      : out_(out), every_(every), profile_(profile) {}

  bool traces(int64_t step) const { return profile_.step == step || (every_ > 0 && step % every_ == 0); }
  // Whether the step is slow because of it: itself, and the one that was issued while it ran.
  bool slows_down(int64_t step) const { return traced_ > 0 && step >= traced_ && step <= traced_ + 1; }

  // Of a step that was traced, on this rank.
  void keep(int64_t step, Trace& trace, const Program& program, const HostGroup& group, Executor& executor);

 private:
  const std::filesystem::path& out_;
  int64_t every_;
  const Profile& profile_;
  int64_t traced_ = 0;  // the last one
};

}  // namespace sextant
