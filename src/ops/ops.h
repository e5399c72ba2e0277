// The table of all op definitions. Each name is a record in the op file of that name.
#pragma once

#include <span>
#include <string_view>

#include "ir/op_def.h"

namespace sextant {

namespace ops {
#define OP(name) extern const OpDef name;
#include "ops/ops.def"
#undef OP
}  // namespace ops

std::span<const OpDef* const> all_ops();
const OpDef* find_op(std::string_view name);  // null when there is none

}  // namespace sextant
