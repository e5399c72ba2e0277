// OpFault: a number that an op makes becomes NaN, in one step on one rank: a drill for what has to find it. Nothing
// else of the op changes. Only where observers see the outputs themselves and not copies: on CPUs.
#pragma once

#include <string>

#include "exec/executor.h"
#include "train/faults/fault.h"

namespace sextant {

// UserError where this rank runs no op of the fault's name, or one that makes no floating-point numbers, or its device
// shows copies of what ops make.
void require_op_of(const Fault& fault, const Bound& bound);

class OpFault final : public OpObserver {
 public:
  // Of a fault of kind spoils_op. Who else observes, is called behind it; may be null.
  OpFault(const Fault& fault, OpObserver* next) : op_(fault.op), next_(next) {}

  void after(const OpRun& run) override;

 private:
  std::string op_;
  OpObserver* next_;
  bool struck_ = false;  // in the op's first run of the step, of the first microbatch
};

}  // namespace sextant
