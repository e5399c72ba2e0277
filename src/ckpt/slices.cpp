#include "ckpt/slices.h"

#include "base/error.h"

namespace sextant {

std::vector<Box> held_boxes(const StateView& state, const Value& value) {
  const Mesh& mesh = state.program().mesh;
  Layout whole = invariant_layout(mesh);
  Coordinate at = coordinate_of(mesh, state.rank());
  return common_boxes(value.shape, mesh, {value.layout, at}, {whole, at});
}

bool is_writer(const StateView& state, const Value& value) {
  const Mesh& mesh = state.program().mesh;
  Coordinate at = coordinate_of(mesh, state.rank());
  for (int axis = 0; axis < mesh.axis_count(); ++axis) {
    if (mesh.role(axis) == AxisRole::pipeline) continue;
    if (value.layout.at(axis).kind != StateKind::sharded && at[static_cast<size_t>(axis)] != 0) return false;
  }
  return true;
}

std::vector<Piece> held_pieces(const StateView& state, const Value& value) {
  BUG_IF(value.shape.rank() > 2, "{} has {} dims; checkpoints hold vectors and matrices", value.path,
         value.shape.rank());
  std::vector<Piece> pieces;
  int64_t stride = value.local.rank() == 2 ? value.local[1] : 1;
  for (const Box& box : held_boxes(state, value)) {
    Piece piece{.rows = 1, .columns = 1, .stride = stride};
    if (value.shape.rank() >= 1) {
      piece.row = value.stored.first_row + box.to[0], piece.rows = box.extent[0];
      piece.at = box.from[0] * stride;
    }
    if (value.shape.rank() == 2) {
      piece.column = box.to[1], piece.columns = box.extent[1];
      piece.at += box.from[1];
    }
    pieces.push_back(piece);
  }
  return pieces;
}

}  // namespace sextant
