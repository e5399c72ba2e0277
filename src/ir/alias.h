// The aliases of one op: those of its definition, and the buffer that an op was told to write into.
#pragma once

#include "ir/op_def.h"

namespace sextant {

// An accumulating op (attr accumulate=1) carries the running sum as its last input and adds onto it with output 0; an
// op with attr into=1 overwrites its last input with output 0. With attr starts=1 an accumulating op (or `accumulate`
// itself) is the first of a step to touch its sum: for the first microbatch it overwrites what is there, so that nobody
// has to clear it.
inline bool accumulates(const Op& op) {
  return op.attrs.integer_or("accumulate", 0) != 0;
}
inline bool starts_sum(const Op& op) {
  return op.attrs.integer_or("starts", 0) != 0;
}
inline bool writes_into(const Op& op) {
  return op.attrs.integer_or("into", 0) != 0;
}

inline std::vector<Alias> aliases_of(const Op& op) {
  if (accumulates(op) || writes_into(op))
    return {{.output = 0, .input = static_cast<int>(op.inputs.size()) - 1, .rule = Alias::Rule::must}};
  std::vector<Alias> aliases = op.def->alias_by_attrs ? op.def->alias_by_attrs(op.attrs) : op.def->alias;
  std::erase_if(aliases, [&](const Alias& alias) {  // of operands that this op leaves out
    return alias.input >= static_cast<int>(op.inputs.size()) || alias.output >= static_cast<int>(op.outputs.size());
  });
  return aliases;
}

}  // namespace sextant
