// One op as a Program of its own, bound by a real executor and timed by its trace: what bench ops and bench attention
// run. Inputs are random and positive, integers below a limit.
#pragma once

#include <cstdint>
#include <memory>

#include "exec/executor.h"
#include "ops/ops.h"

namespace sextant {

struct OneOpSpec {
  const OpDef& def;
  TensorTypes inputs;
  Attrs attrs = {};
  int64_t integers_below = 2;
};

class OneOp {
 public:
  // UserError when the executor has no kernel for it.
  OneOp(Executor& executor, const OneOpSpec& spec);

  double run();  // seconds
  Cost cost() const;

 private:
  Program program_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Bound> bound_;
};

}  // namespace sextant
