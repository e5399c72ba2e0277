#include "mesh/layout.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/units.h"

namespace sextant {

namespace {

constexpr std::pair<char, ShardOrder> kOrderLetters[] = {
    {'S', ShardOrder::plain}, {'Z', ShardOrder::zigzag}, {'T', ShardOrder::striped}, {'B', ShardOrder::blocks}};

char letter_of(ShardOrder order) {
  for (const auto& [letter, known] : kOrderLetters)
    if (known == order) return letter;
  BUG("unknown order of shards");
}

}  // namespace

std::string AxisState::text() const {
  switch (kind) {
    case StateKind::replicated:
      return "R";
    case StateKind::invariant:
      return "I";
    case StateKind::sharded:
      return fmt::format("{}({})", letter_of(order), dim);
    case StateKind::partial:
      return "P";
    case StateKind::partial_max:
      return "P(max)";
  }
  BUG("unknown axis state");
}

AxisState gradient_state(AxisState state) {
  if (state.kind == StateKind::replicated) return kPartial;
  if (state.kind == StateKind::partial) return kReplicated;
  BUG_IF(state.kind == StateKind::partial_max, "a maximum over ranks has no gradient");
  return state;
}

Layout invariant_layout(const Mesh& mesh) {
  return {.states = std::vector<AxisState>(mesh.axes.size(), kInvariant)};
}

Layout gradient_layout(const Layout& layout) {
  Layout gradient = layout;
  for (AxisState& state : gradient.states) state = gradient_state(state);
  return gradient;
}

std::vector<int> axes_of_dim(const Layout& layout, int dim) {
  std::vector<int> axes;
  for (int axis = 0; axis < static_cast<int>(layout.states.size()); ++axis)
    if (layout.at(axis).shards(dim)) axes.push_back(axis);
  auto place = [&](int axis) {
    return std::find(layout.order.begin(), layout.order.end(), axis) - layout.order.begin();
  };
  std::stable_sort(axes.begin(), axes.end(), [&](int a, int b) { return place(a) < place(b); });
  return axes;
}

namespace {

// All axes, those named in `order` first.
std::vector<int> axes_in_order(const Layout& layout) {
  std::vector<int> axes = layout.order;
  for (int axis = 0; axis < static_cast<int>(layout.states.size()); ++axis)
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) axes.push_back(axis);
  return axes;
}

}  // namespace

std::vector<int> with_axis_last(const Layout& layout, int axis) {
  std::vector<int> axes = axes_in_order(layout);
  axes.erase(std::find(axes.begin(), axes.end(), axis));
  axes.push_back(axis);
  return axes;
}

namespace {

// Split into segments, in blocks of them, or in zigzag order: each part by itself, axis by axis.
int64_t local_extent_of_parts(std::vector<int64_t> parts, const Layout& layout, int dim, const Mesh& mesh) {
  for (int axis : axes_of_dim(layout, dim)) {
    if (mesh.size(axis) == 1) continue;
    if (layout.at(axis).order == ShardOrder::blocks && parts.size() > 1) {
      parts.resize(parts_of_block(parts.size(), mesh.size(axis)));  // all blocks are of one size
      continue;
    }
    size_t pieces = layout.at(axis).order == ShardOrder::zigzag ? 2 : 1;  // that one rank gets of each part
    std::vector<int64_t> mine;
    for (int64_t part : parts)
      mine.insert(mine.end(), pieces, ceil_div(part, static_cast<int64_t>(pieces) * mesh.size(axis)));
    parts = std::move(mine);  // later axes split each piece by itself
  }
  return std::accumulate(parts.begin(), parts.end(), int64_t{0});
}

}  // namespace

size_t parts_of_block(size_t parts, int ranks) {
  BUG_IF(parts % static_cast<size_t>(ranks) != 0, "{} segments cannot be distributed to {} ranks", parts, ranks);
  return parts / static_cast<size_t>(ranks);
}

LocalShape local_shape(const GlobalShape& shape, const Layout& layout, const Mesh& mesh) {
  LocalShape local{std::vector<int64_t>(shape.dims().begin(), shape.dims().end())};
  for (int dim = 0; dim < shape.rank(); ++dim) {
    bool split = false, in_parts = layout.segments.dim == dim;
    for (int axis = 0; axis < static_cast<int>(layout.states.size()); ++axis) {
      if (!layout.at(axis).shards(dim) || mesh.size(axis) == 1) continue;
      split = true;
      in_parts = in_parts || layout.at(axis).order == ShardOrder::zigzag;
    }
    if (!split) continue;
    if (in_parts) {
      std::vector<int64_t> parts{shape[dim]};
      local[dim] =
          local_extent_of_parts(layout.segments.dim == dim ? layout.segments.extents : parts, layout, dim, mesh);
      continue;
    }
    // In one piece the order of the axes does not matter.
    for (int axis = 0; axis < static_cast<int>(layout.states.size()); ++axis)
      if (layout.at(axis).shards(dim)) local[dim] = ceil_div(local[dim], int64_t{mesh.size(axis)});
  }
  return local;
}

std::string layout_text(const Layout& layout, const Mesh& mesh) {
  std::string out;
  for (int axis : axes_in_order(layout)) {
    if (mesh.size(axis) == 1 || layout.at(axis) == kInvariant) continue;
    out += fmt::format("{}{}:{}", out.empty() ? "" : " ", mesh.name(axis), layout.at(axis).text());
  }
  if (layout.segments.any()) {
    out += fmt::format("{}{}:{}", out.empty() ? "" : " ", layout.segments.dim, fmt::join(layout.segments.extents, "|"));
  }
  return out.empty() ? "I" : out;
}

namespace {

AxisState parse_state(std::string_view text) {
  if (text == "R") return kReplicated;
  if (text == "I") return kInvariant;
  if (text == "P") return kPartial;
  if (text == "P(max)") return kPartialMax;
  int dim = 0;
  if (text.size() >= 4 && text[1] == '(' && text.ends_with(")") &&
      std::from_chars(text.data() + 2, text.data() + text.size() - 1, dim).ptr == text.data() + text.size() - 1)
    for (const auto& [letter, order] : kOrderLetters)
      if (letter == text[0]) return {StateKind::sharded, dim, order};
  throw UserError({.place = std::string(text),
                   .got = "not an axis state",
                   .expected = "R, I, P, P(max), S(dim), Z(dim), T(dim) or B(dim)"});
}

Segments parse_segments(int dim, std::string_view text) {
  Segments segments{.dim = dim};
  while (!text.empty()) {
    int64_t extent = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
    if (error != std::errc{})
      throw UserError(
          {.place = std::string(text), .got = "not a segment list", .expected = "extents such as 64|32|32"});
    segments.extents.push_back(extent);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (text.starts_with("|")) text.remove_prefix(1);
  }
  return segments;
}

}  // namespace

Layout parse_layout(std::string_view text, const Mesh& mesh) {
  Layout layout = invariant_layout(mesh);
  if (text == "I") return layout;
  while (!text.empty()) {
    std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    size_t colon = word.find(':');
    std::string_view name = word.substr(0, colon);
    if (colon == std::string_view::npos)
      throw UserError({.place = std::string(word), .got = "not a layout entry", .expected = "axis:state"});
    std::string_view value = word.substr(colon + 1);
    if (auto axis = mesh.find(name)) {
      layout.states[static_cast<size_t>(*axis)] = parse_state(value);
      layout.order.push_back(*axis);
    } else if (name.size() == 1 && name[0] >= '0' && name[0] <= '9') {
      layout.segments = parse_segments(name[0] - '0', value);
    } else {
      throw UserError({.place = std::string(word),
                       .got = fmt::format("the mesh has no axis {}", name),
                       .expected = fmt::format("one of {}", mesh.text())});
    }
  }
  return layout;
}

}  // namespace sextant
