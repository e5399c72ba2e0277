// Names of an op: in a rank's status ("layers.1.attn.out.moved (all_reduce over tp)"), and in random draws.
#pragma once

#include <cstdint>
#include <string>

#include "base/hash.h"
#include "ir/op_def.h"
#include "ir/program.h"
#include "ops/transfer.h"

namespace sextant {

inline std::string place_of(const Op& op) {
  std::string axes = axes_text(op.attrs.names("axes"));
  std::optional<Transfer> transfer = transfer_of(op.attrs);
  return op.path + " (" + std::string(transfer ? name_of(*transfer) : op.def->name) +
         (axes.empty() ? "" : " over " + axes) + ")";
}

// By which checks draw an op (exec/step_checks.h): the same on every device and mesh.
inline uint64_t drawn_name_of(const Op& op) {
  return hash64(op.def->name, hash64(op.path));
}

// How a status calls the regions of an action.
inline char letter_of(RegionKind kind) {
  return "FBWU"[static_cast<size_t>(kind)];
}

}  // namespace sextant
