#include "train/step_tracer.h"

#include "run/programs.h"
#include "train/op_times.h"

namespace sextant {

void StepTracer::keep(int64_t step, Trace& trace, const Program& program, const HostGroup& group, Executor& executor) {
  for (Event& event : trace) event.step = step;
  traced_ = step;
  append_op_times(out_, {.step = step, .rank = group.rank(), .stage = stage_rank_of(program.mesh, group.rank())},
                  trace);
  if (profile_.step == step && group.leads()) profile_.take(trace, executor);
}

}  // namespace sextant
