// The aliases of one op: those of its definition, and the gradient that an accumulating op adds onto.
#pragma once

#include "ir/op_def.h"

namespace sextant {

// An accumulating op (attr accumulate=1) carries the running sum as its last input and writes it as output 0.
inline bool accumulates(const Op& op) { return op.attrs.integer_or("accumulate", 0) != 0; }

inline std::vector<Alias> aliases_of(const Op& op) {
  if (!accumulates(op)) return op.def->alias;
  return {{.output = 0, .input = static_cast<int>(op.inputs.size()) - 1, .rule = Alias::Rule::must}};
}

}  // namespace sextant
