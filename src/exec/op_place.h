// What a rank's status calls an op: "layers.1.attn.out.moved (all_reduce over tp)".
#pragma once

#include <string>

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

// How a status calls the regions of an action.
inline char letter_of(RegionKind kind) {
  return "FBWU"[static_cast<size_t>(kind)];
}

}  // namespace sextant
