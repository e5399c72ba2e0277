// The types that an op's operands have in bf16 training, read from Programs lowered for a GPU: what an op's tests give
// a kernel is then what a run gives it, and no test keeps a list of operands that stay in f32.
#pragma once

#include <cstddef>

#include "base/dtype.h"
#include "ir/op_def.h"

namespace sextant {

// Whether input `input` of the op is f32 wherever a run in bf16 has it. False for an op that none of those runs has.
bool stays_f32(const OpDef& def, size_t input);

}  // namespace sextant
