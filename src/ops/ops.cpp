#include "ops/ops.h"

namespace sextant {

std::span<const OpDef* const> all_ops() {
  static constexpr const OpDef* kAll[] = {
#define OP(name) &ops::name,
#include "ops/ops.def"
#undef OP
  };
  return kAll;
}

const OpDef* find_op(std::string_view name) {
  for (const OpDef* def : all_ops())
    if (def->name == name) return def;
  return nullptr;
}

}  // namespace sextant
