#include "mesh/mesh.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace sextant {

int Mesh::world_size() const {
  int n = 1;
  for (const Axis& axis : axes) n *= axis.size;
  return n;
}

std::optional<int> Mesh::find(std::string_view name) const {
  for (int axis = 0; axis < axis_count(); ++axis)
    if (axes[static_cast<size_t>(axis)].name == name) return axis;
  return std::nullopt;
}

std::string Mesh::text() const {
  std::string out;
  for (const Axis& axis : axes) out += fmt::format("{}{}={}", out.empty() ? "" : " ", axis.name, axis.size);
  return out;
}

Coordinate coordinate_of(const Mesh& mesh, int rank) {
  BUG_IF(rank < 0 || rank >= mesh.world_size(), "rank {} outside a mesh of {}", rank, mesh.world_size());
  Coordinate at(mesh.axes.size());
  for (int axis = mesh.axis_count() - 1; axis >= 0; --axis) {
    at[static_cast<size_t>(axis)] = rank % mesh.size(axis);
    rank /= mesh.size(axis);
  }
  return at;
}

int rank_of(const Mesh& mesh, const Coordinate& coordinate) {
  int rank = 0;
  for (int axis = 0; axis < mesh.axis_count(); ++axis)
    rank = rank * mesh.size(axis) + coordinate[static_cast<size_t>(axis)];
  return rank;
}

std::vector<int> group_of(const Mesh& mesh, int rank, const std::vector<int>& axes) {
  coordinate_of(mesh, rank);  // checks the rank
  std::vector<int> ranks{rank};
  int stride = 1;
  for (int axis = mesh.axis_count() - 1; axis >= 0; --axis) {
    int size = mesh.size(axis);
    if (size > 1 && std::find(axes.begin(), axes.end(), axis) != axes.end()) {
      // Every rank so far, moved to each place along this axis; the axis is slower than those before it.
      int origin = -((rank / stride) % size) * stride;
      std::vector<int> along;
      along.reserve(ranks.size() * static_cast<size_t>(size));
      for (int place = 0; place < size; ++place)
        for (int other : ranks) along.push_back(other + origin + place * stride);
      ranks = std::move(along);
    }
    stride *= size;
  }
  return ranks;
}

std::vector<int> group_of(const Mesh& mesh, int rank, const std::vector<std::string>& axes) {
  std::vector<int> indices;
  for (const std::string& name : axes)
    if (std::optional<int> axis = mesh.find(name)) indices.push_back(*axis);
  return group_of(mesh, rank, indices);
}

std::string axes_text(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ","));
}

}  // namespace sextant
