// Layout: how one tensor lies on a mesh. Per axis the tensor is in one state, and the state fixes its gradient's:
//   R replicated  same on all ranks, each uses its copy for different work   gradient P
//   I invariant   same on all ranks, all do the same work with it            gradient I
//   S(dim)        sharded along a tensor dim                                 gradient S(dim)
//   Z(dim)        the same, in zigzag order: 2n pieces, rank i has piece i   gradient Z(dim)
//                 and piece 2n−1−i, so that causal attention is shared evenly
//   T(dim)        the same, striped: element i on rank i mod n, so that the     gradient T(dim)
//                 causal attention of every document in it is shared evenly
//   B(dim)        whole segments: segments are distributed in blocks,  gradient B(dim)
//                 n-th part of them to the n-th rank; without segments as S
//   P partial     the true value is the sum over ranks                       gradient R
//   P(max)        the true value is the largest over ranks: of scales,       no gradient
//                 never of what is trained
// Communication is the difference of two layouts: see redistribution.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/shape.h"
#include "mesh/mesh.h"

namespace sextant {

enum class StateKind : uint8_t { replicated, invariant, sharded, partial, partial_max };
enum class ShardOrder : uint8_t { plain, zigzag, striped, blocks };

struct AxisState {
  StateKind kind = StateKind::invariant;
  int dim = -1;  // sharded only
  ShardOrder order = ShardOrder::plain;

  bool shards(int d) const { return kind == StateKind::sharded && dim == d; }
  bool operator==(const AxisState&) const = default;
  std::string text() const;  // "R", "I", "S(1)", "Z(1)", "T(1)", "B(0)", "P", "P(max)"
};

inline constexpr AxisState kReplicated{StateKind::replicated};
inline constexpr AxisState kInvariant{StateKind::invariant};
inline constexpr AxisState kPartial{StateKind::partial};
inline constexpr AxisState kPartialMax{StateKind::partial_max};
constexpr AxisState sharded(int dim) {
  return {StateKind::sharded, dim};
}
constexpr AxisState zigzag(int dim) {
  return {StateKind::sharded, dim, ShardOrder::zigzag};
}
constexpr AxisState striped(int dim) {
  return {StateKind::sharded, dim, ShardOrder::striped};
}
constexpr AxisState blocks(int dim) {
  return {StateKind::sharded, dim, ShardOrder::blocks};
}

AxisState gradient_state(AxisState state);  // BUG of a maximum: nothing flows back through it

// A dim made of parts that are each split alike: q|k|v, gate|up. The extents sum to the dim.
struct Segments {
  int dim = -1;  // -1: no dim is segmented
  std::vector<int64_t> extents;
  bool any() const { return dim >= 0; }
  bool operator==(const Segments&) const = default;
};

struct Layout {
  std::vector<AxisState> states;  // one per mesh axis
  // Axes in the order in which they split a dim they share, major first. Empty: mesh order. Storage axes (ZeRO) come
  // after use axes (tensor parallel), so that gathering the former yields the shard of the latter in one piece.
  std::vector<int> order;
  Segments segments;

  AxisState at(int axis) const { return states[static_cast<size_t>(axis)]; }
  bool operator==(const Layout&) const = default;
};

Layout invariant_layout(const Mesh& mesh);
Layout gradient_layout(const Layout& layout);

// The axes that split `dim`, major first.
std::vector<int> axes_of_dim(const Layout& layout, int dim);

// All axes in the layout's order, `axis` moved to the end: it splits what the others left.
std::vector<int> with_axis_last(const Layout& layout, int axis);

// How many of a dim's segments one rank gets along an axis that distributes them whole. BUG where they do not divide.
size_t parts_of_block(size_t parts, int ranks);

// The shape that one rank holds. A dim that does not divide is padded: every rank holds the size of the largest part.
LocalShape local_shape(const GlobalShape& shape, const Layout& layout, const Mesh& mesh);

// "I" when every axis is invariant, else "dp:S(0) tp:R", with axes of size 1 left out and axes that share a dim major
// first; parse reads it back.
std::string layout_text(const Layout& layout, const Mesh& mesh);
Layout parse_layout(std::string_view text, const Mesh& mesh);

}  // namespace sextant
