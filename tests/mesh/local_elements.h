// The slow truth about layouts: lists of single elements, cut up as the words of mesh/layout.h say. Padding is -1.
#pragma once

#include <cstdint>
#include <vector>

#include "mesh/layout.h"

namespace sextant {

using ElementList = std::vector<int64_t>;

// Elements of one dim that the rank at a coordinate holds, in local order.
inline ElementList local_indices(int64_t extent, const Layout& layout, int dim, const Mesh& mesh,
                                 const Coordinate& at) {
  std::vector<ElementList> pieces;
  std::vector<int64_t> parts = layout.segments.dim == dim ? layout.segments.extents : std::vector<int64_t>{extent};
  for (int64_t next = 0; int64_t part : parts) {
    pieces.emplace_back();
    for (int64_t i = 0; i < part; ++i) pieces.back().push_back(next++);
  }
  for (int axis : axes_of_dim(layout, dim)) {
    size_t ranks = static_cast<size_t>(mesh.size(axis)), own = static_cast<size_t>(at[static_cast<size_t>(axis)]);
    if (ranks == 1) continue;
    bool zigzag = layout.at(axis).order == ShardOrder::zigzag, striped = layout.at(axis).order == ShardOrder::striped;
    size_t count = zigzag ? 2 * ranks : ranks;
    std::vector<ElementList> mine;
    for (ElementList& piece : pieces) {
      while (piece.size() % count != 0) piece.push_back(-1);
      auto cut = [&](size_t index) {
        auto begin = piece.begin() + static_cast<std::ptrdiff_t>(index * piece.size() / count);
        mine.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(piece.size() / count));
      };
      if (striped) {
        mine.emplace_back();
        for (size_t i = own; i < piece.size(); i += ranks) mine.back().push_back(piece[i]);
        continue;
      }
      cut(own);
      if (zigzag) cut(count - 1 - own);
    }
    pieces = std::move(mine);
  }
  ElementList flat;
  for (const ElementList& piece : pieces) flat.insert(flat.end(), piece.begin(), piece.end());
  return flat;
}

// Elements of a tensor that the rank holds, in memory order: global elements counted row by row.
inline ElementList local_elements(const GlobalShape& shape, const Layout& layout, const Mesh& mesh,
                                  const Coordinate& at) {
  ElementList elements{0};
  for (int dim = 0; dim < shape.rank(); ++dim) {
    ElementList longer;
    for (int64_t outer : elements)
      for (int64_t i : local_indices(shape[dim], layout, dim, mesh, at))
        longer.push_back(outer < 0 || i < 0 ? -1 : outer * shape[dim] + i);
    elements = std::move(longer);
  }
  return elements;
}

// Layouts of two axes: every pair of these states, in both orders, with and without segments of dim 0.
inline std::vector<Layout> many_layouts(const std::vector<AxisState>& states, const std::vector<Segments>& segments) {
  std::vector<Layout> layouts;
  for (AxisState a : states)
    for (AxisState b : states)
      for (const std::vector<int>& order : {std::vector<int>{}, {1, 0}})
        for (const Segments& s : segments) layouts.push_back({.states = {a, b}, .order = order, .segments = s});
  return layouts;
}

}  // namespace sextant
