// Op: one operation on values. What it means stands in its OpDef (op_def.h); an Op adds operands, constants, and where
// in the step it belongs.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

#include "ir/attrs.h"
#include "ir/value.h"

namespace sextant {

struct OpDef;

enum class Phase : uint8_t {
  forward,
  recompute,        // a forward op run again during backward
  input_gradient,   // on the critical path of backward
  weight_gradient,  // may be deferred
  update,           // once per step
};

struct Op {
  const OpDef* def = nullptr;
  Attrs attrs;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Phase phase = Phase::forward;
  int32_t block = -1;  // which repeated block of the model (layer) it belongs to; -1 outside
  int32_t stage = 0;   // which pipeline stage runs it; ops of the update run wherever their parameter is
  std::string path;    // "layers.3.attn.qkv"
  std::source_location where;
};

std::string_view name_of(Phase phase);

}  // namespace sextant
