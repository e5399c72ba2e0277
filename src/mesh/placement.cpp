#include "mesh/placement.h"

#include <algorithm>

#include "base/units.h"

namespace sextant {

namespace {

// Every stride-th element of a dim from `begin` on: those before `end` are real, and it takes `length` local elements.
struct Piece {
  int64_t begin, end, length, stride = 1;
};

Piece nth_piece(const Piece& whole, int64_t pieces, int64_t index) {
  int64_t length = ceil_div(whole.length, pieces);
  int64_t begin = whole.begin + index * length * whole.stride;
  return {begin, std::min(whole.end, begin + length * whole.stride), length, whole.stride};
}

Piece nth_stripe(const Piece& whole, int64_t stripes, int64_t index) {
  return {whole.begin + index * whole.stride, whole.end, ceil_div(whole.length, stripes), whole.stride * stripes};
}

}  // namespace

std::vector<Span> held(int64_t extent, const Layout& layout, int dim, const Mesh& mesh, const Coordinate& at) {
  std::vector<Piece> pieces;
  std::vector<int64_t> parts = layout.segments.dim == dim ? layout.segments.extents : std::vector<int64_t>{extent};
  for (int64_t begin = 0; int64_t part : parts) {
    pieces.push_back({begin, begin + part, part});
    begin += part;
  }
  for (int axis : axes_of_dim(layout, dim)) {
    int64_t n = mesh.size(axis), own = at[static_cast<size_t>(axis)];
    if (n == 1) continue;  // its state says nothing
    std::vector<Piece> mine;
    if (layout.at(axis).order == ShardOrder::blocks && pieces.size() > 1) {
      auto count = static_cast<std::ptrdiff_t>(parts_of_block(pieces.size(), mesh.size(axis)));
      mine.assign(pieces.begin() + own * count, pieces.begin() + (own + 1) * count);
      pieces = std::move(mine);
      continue;
    }
    for (const Piece& piece : pieces) {
      if (layout.at(axis).order == ShardOrder::zigzag) {
        mine.push_back(nth_piece(piece, 2 * n, own));
        mine.push_back(nth_piece(piece, 2 * n, 2 * n - 1 - own));
      } else if (layout.at(axis).order == ShardOrder::striped) {
        mine.push_back(nth_stripe(piece, n, own));
      } else {
        mine.push_back(nth_piece(piece, n, own));
      }
    }
    pieces = std::move(mine);
  }
  std::vector<Span> spans;
  for (int64_t local = 0; const Piece& piece : pieces) {
    if (piece.end > piece.begin)
      spans.push_back({piece.begin, local, ceil_div(piece.end - piece.begin, piece.stride), piece.stride});
    local += piece.length;
  }
  return spans;
}

int64_t Box::count() const {
  int64_t n = 1;
  for (int64_t e : extent) n *= e;
  return n;
}

namespace {

// A run of elements that two lists of spans share: `from` and `to` are its local offsets on the two sides. The runs are
// in global order; the global offset itself is dropped.
struct Shared {
  int64_t from, to, count;
};

// Calls visit(first global element, stretch) for every stretch of elements that lie together on both sides.
template <class Visit>
void for_shared(const Span& a, const Span& b, const Visit& visit) {
  const int64_t begin = std::max(a.global, b.global);
  const int64_t end = std::min(a.global_at(a.count - 1), b.global_at(b.count - 1)) + 1;
  if (a.stride == b.stride) {
    if ((a.global - b.global) % a.stride != 0 || begin >= end) return;
    visit(begin, Shared{a.local + a.find(begin), b.local + b.find(begin), ceil_div(end - begin, a.stride)});
    return;
  }
  const Span& sparse = a.stride > b.stride ? a : b;  // neighbours on this side are apart on the other
  for (int64_t i = std::max<int64_t>(0, ceil_div(begin - sparse.global, sparse.stride)); i < sparse.count; ++i) {
    int64_t element = sparse.global_at(i);
    if (element >= end) return;
    int64_t in_a = a.find(element), in_b = b.find(element);
    if (in_a >= 0 && in_b >= 0) visit(element, Shared{a.local + in_a, b.local + in_b, 1});
  }
}

std::vector<Shared> shared_spans(const std::vector<Span>& from, const std::vector<Span>& to) {
  std::vector<std::pair<int64_t, Shared>> found;
  for (const Span& a : from)
    for (const Span& b : to)
      for_shared(a, b, [&](int64_t begin, const Shared& shared) { found.emplace_back(begin, shared); });
  std::sort(found.begin(), found.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<Shared> out;
  for (const auto& [global, shared] : found) out.push_back(shared);
  return out;
}

}  // namespace

std::vector<Box> common_boxes(const GlobalShape& shape, const Mesh& mesh, const Side& from, const Side& to) {
  std::vector<Box> boxes{{}};
  for (int dim = 0; dim < shape.rank(); ++dim) {
    std::vector<Shared> shared =
        shared_spans(held(shape[dim], from.layout, dim, mesh, from.at), held(shape[dim], to.layout, dim, mesh, to.at));
    std::vector<Box> longer;
    for (const Box& box : boxes) {
      for (const Shared& s : shared) {
        Box next = box;
        next.from.push_back(s.from);
        next.to.push_back(s.to);
        next.extent.push_back(s.count);
        longer.push_back(std::move(next));
      }
    }
    boxes = std::move(longer);
  }
  return boxes;
}

namespace {

// Whether every rank's part of a dim is one stretch of it.
bool is_one_stretch(const Layout& layout, int dim) {
  return layout.segments.dim != dim && std::ranges::none_of(axes_of_dim(layout, dim), [&](int axis) {
           ShardOrder order = layout.at(axis).order;
           return order == ShardOrder::zigzag || order == ShardOrder::striped;
         });
}

// The spans of one dim that the ranks of a group hold, each once: the ranks differ along those of `axes` that split the
// dim.
std::vector<std::vector<Span>> held_by_group(int64_t extent, const Layout& layout, int dim, const Mesh& mesh,
                                             const std::vector<int>& axes) {
  std::vector<int> splitting;
  for (int axis : axes_of_dim(layout, dim))
    if (std::ranges::count(axes, axis) > 0) splitting.push_back(axis);
  std::vector<std::vector<Span>> all;
  for (int rank : group_of(mesh, 0, splitting))
    all.push_back(held(extent, layout, dim, mesh, coordinate_of(mesh, rank)));
  return all;
}

}  // namespace

// An axis splits one dim of a layout at most: what two ranks share of a dim does not depend on what they share of
// another, and the most of all is the product of the most of each.
int64_t largest_exchange(const GlobalShape& shape, const Mesh& mesh, const Layout& from, const Layout& to,
                         const std::vector<int>& axes) {
  int64_t product = 1;
  for (int dim = 0; dim < shape.rank(); ++dim) {
    int64_t most = 0;
    // Of parts that are one stretch rank 0's is the longest and begins where the dim does, on both sides: no two ranks
    // share more than it does with itself.
    const bool is_rank_0_enough = is_one_stretch(from, dim) && is_one_stretch(to, dim);
    const std::vector<int>& along = is_rank_0_enough ? std::vector<int>{} : axes;
    std::vector<std::vector<Span>> receivers = held_by_group(shape[dim], to, dim, mesh, along);
    for (const std::vector<Span>& sender : held_by_group(shape[dim], from, dim, mesh, along))
      for (const std::vector<Span>& receiver : receivers) {
        int64_t count = 0;
        for (const Span& a : sender)
          for (const Span& b : receiver)
            for_shared(a, b, [&](int64_t, const Shared& shared) { count += shared.count; });
        most = std::max(most, count);
      }
    product *= most;
  }
  return product;
}

bool parts_are_contiguous(const GlobalShape& shape, const Mesh& mesh, const Layout& whole, const Layout& part,
                          const std::vector<int>& axes) {
  LocalShape part_shape = local_shape(shape, part, mesh), whole_shape = local_shape(shape, whole, mesh);
  std::vector<int> group = group_of(mesh, 0, axes);
  Coordinate own = coordinate_of(mesh, 0);
  if (whole_shape.count() != part_shape.count() * static_cast<int64_t>(group.size())) return false;
  // Where a part lies is affine in its place along each axis, and the last part is the one that padding would cut: the
  // first, its neighbour along each axis, and the last stand for all.
  std::vector<size_t> tested{0, group.size() - 1};
  size_t stride = 1;
  for (size_t axis = mesh.axes.size(); axis-- > 0;) {
    if (mesh.axes[axis].size == 1 || std::find(axes.begin(), axes.end(), static_cast<int>(axis)) == axes.end())
      continue;
    tested.push_back(stride);
    stride *= static_cast<size_t>(mesh.axes[axis].size);
  }
  for (size_t i : tested) {
    std::vector<Box> boxes = common_boxes(shape, mesh, {part, coordinate_of(mesh, group[i])}, {whole, own});
    if (boxes.size() != 1 || boxes[0].count() != part_shape.count()) return false;
    // Only leading dims of size 1 may come before the one that is split.
    int64_t at = 0;
    for (int dim = 0; dim < shape.rank(); ++dim) at = at * whole_shape[dim] + boxes[0].to[static_cast<size_t>(dim)];
    if (at != static_cast<int64_t>(i) * part_shape.count()) return false;
    bool inside = false;  // past the first dim of extent above 1, the part must span the whole
    for (int dim = 0; dim < shape.rank(); ++dim) {
      if (inside && part_shape[dim] != whole_shape[dim]) return false;
      inside = inside || part_shape[dim] > 1;
    }
  }
  return true;
}

}  // namespace sextant
