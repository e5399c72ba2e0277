// Lanes: an op with attr lane="comm" runs beside the compute lane, in the order of the Program with the other such ops.
// It starts after the compute ops that stand before it, and ends before the first op that reads what it makes (it is
// joined there); until then its operands stay untouched. Attr when="last": the op runs only for the last microbatch of
// its region.
#pragma once

#include "ir/op.h"

namespace sextant {

inline bool on_comm_lane(const Op& op) {
  return op.attrs.text_or("lane", "") == "comm";
}
inline bool last_microbatch_only(const Op& op) {
  return op.attrs.text_or("when", "") == "last";
}

}  // namespace sextant
