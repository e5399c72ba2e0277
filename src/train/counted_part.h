// Which ranks' parts of a value are added up over all ranks.
#pragma once

#include "ir/program.h"

namespace sextant {

// Whether the rank adds what it holds of the value: along axes where it is a part of a sum every rank has its own,
// along the others all have the same, and the first one's counts. A pipeline rank counts what it has.
inline bool counts_part(const Program& program, int rank, const Value& value) {
  if (value.buffer < 0) return false;
  Coordinate at = coordinate_of(program.mesh, rank);
  for (int axis = 0; axis < program.mesh.axis_count(); ++axis) {
    bool same_elsewhere = value.layout.at(axis) != kPartial && program.mesh.role(axis) != AxisRole::pipeline;
    if (same_elsewhere && at[static_cast<size_t>(axis)] != 0) return false;
  }
  return true;
}

}  // namespace sextant
