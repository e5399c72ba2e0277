// Placement: which elements of a tensor one rank holds, and which of them two ranks (or two layouts of one rank) share.
// All of the layout algebra's movements of data are made of these pieces, so orders, segments, zigzag and padding need
// no special case anywhere else.
#pragma once

#include <cstdint>
#include <vector>

#include "mesh/layout.h"

namespace sextant {

// Elements global, global + stride, … (count of them) of a dim are elements [local, local + count) of what the rank
// holds. Local elements that no span covers are padding.
struct Span {
  int64_t global = 0, local = 0, count = 0;
  int64_t stride = 1;

  int64_t global_at(int64_t i) const { return global + i * stride; }
  // Which of the span's elements that is; -1 where it has it not.
  int64_t find(int64_t element) const {
    int64_t behind = element - global;
    return behind >= 0 && behind % stride == 0 && behind / stride < count ? behind / stride : -1;
  }
  bool operator==(const Span&) const = default;
};

// The spans of one dim that the rank at a coordinate holds, in local order.
std::vector<Span> held(int64_t extent, const Layout& layout, int dim, const Mesh& mesh, const Coordinate& at);

// A rectangular piece that two local tensors have in common: it begins at `from` in one and at `to` in the other.
struct Box {
  std::vector<int64_t> from, to, extent;  // one entry per dim
  int64_t count() const;
};

// One side of a movement: a layout as one rank sees it.
struct Side {
  const Layout& layout;
  const Coordinate& at;
};

// The pieces that both sides hold, in global order.
std::vector<Box> common_boxes(const GlobalShape& shape, const Mesh& mesh, const Side& from, const Side& to);

// The most elements that any two ranks of a group have in common, one in each layout: what an all-to-all sends in one
// part.
int64_t largest_exchange(const GlobalShape& shape, const Mesh& mesh, const Layout& from, const Layout& to,
                         const std::vector<int>& axes);

// Whether the parts that the ranks of a group hold, one behind the other, are the whole as it lies in memory: then
// gathering and scattering need no packing. `axes` are those along which the group's ranks differ.
bool parts_are_contiguous(const GlobalShape& shape, const Mesh& mesh, const Layout& whole, const Layout& part,
                          const std::vector<int>& axes);

}  // namespace sextant
