#include "exec/executor.h"

namespace sextant {

void run_schedule(Bound& bound, Trace* trace) {
  for (const Action& action : bound.program().schedule) bound.run(action, trace);
  bound.settle();
}

}  // namespace sextant
