// One op as a Program of its own, bound by a real executor and timed by its trace: what bench ops, bench attention and
// grouped GEMMs run. Inputs are random and positive, integers below a limit or given.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "exec/executor.h"
#include "ops/ops.h"

namespace sextant {

struct OneOpSpec {
  const OpDef& def;
  TensorTypes inputs;
  Attrs attrs = {};
  int64_t integers_below = 2;
  std::map<size_t, std::vector<int32_t>> integers = {};  // by input: all elements, where they are not random
};

class OneOp {
 public:
  // UserError when the executor has no kernel for it.
  OneOp(Executor& executor, const OneOpSpec& spec);

  double run();  // seconds
  Cost cost() const;

  // One element of a float input as it was drawn, and of output 0 after a run.
  double drawn(size_t input, int64_t at) const;
  double result(int64_t at) const;

 private:
  const Value& value(const std::string& path) const;

  Program program_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Bound> bound_;
};

}  // namespace sextant
