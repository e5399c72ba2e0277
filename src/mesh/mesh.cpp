#include "mesh/mesh.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace sextant {

namespace {

const AxisDef& axis_named(std::string_view name) {
  const AxisDef* def = find_axis(name);
  BUG_IF(!def, "there is no axis {}", name);
  return *def;
}

// Those of them that the mesh has.
std::vector<int> indices_of(const Mesh& mesh, const std::vector<std::string>& names) {
  std::vector<int> indices;
  for (const std::string& name : names)
    if (std::optional<int> axis = mesh.find(name)) indices.push_back(*axis);
  return indices;
}

}  // namespace

Axis::Axis(std::string_view name, int size) : Axis(axis_named(name), size) {}

int Mesh::world_size() const {
  int n = 1;
  for (const Axis& axis : axes) n *= axis.size;
  return n;
}

std::optional<int> Mesh::find(std::string_view name) const {
  for (int axis = 0; axis < axis_count(); ++axis)
    if (def(axis).name == name) return axis;
  return std::nullopt;
}

std::optional<int> Mesh::find(AxisRole wanted) const {
  std::optional<int> found;
  for (int axis = 0; axis < axis_count(); ++axis) {
    if (role(axis) != wanted) continue;
    BUG_IF(found, "{} has several axes of a role of which one is meant", text());
    found = axis;
  }
  return found;
}

std::vector<int> Mesh::axes_with(AxisRole wanted) const {
  std::vector<int> found;
  for (int axis = 0; axis < axis_count(); ++axis)
    if (role(axis) == wanted) found.push_back(axis);
  return found;
}

int Mesh::ranks(AxisRole role) const {
  int n = 1;
  for (const Axis& axis : axes)
    if (axis.def().role == role) n *= axis.size;
  return n;
}

std::vector<int> Mesh::axes_with(ExpertRole wanted) const {
  std::vector<int> found;
  for (int axis = 0; axis < axis_count(); ++axis)
    if (role(axis) != AxisRole::pipeline && def(axis).experts == wanted) found.push_back(axis);
  return found;
}

int Mesh::ranks(ExpertRole wanted) const {
  int n = 1;
  for (int axis : axes_with(wanted)) n *= size(axis);
  return n;
}

std::vector<int> Mesh::data_axes() const {
  std::vector<int> found;
  for (int axis = 0; axis < axis_count(); ++axis)
    if (differs_in_data(role(axis))) found.push_back(axis);
  return found;
}

std::optional<int> Mesh::copies_axis() const {
  for (int axis = 0; axis < axis_count(); ++axis)
    if (def(axis).pipeline_copies) return axis;
  return std::nullopt;
}

Mesh Mesh::with_pipeline_copies() const {
  std::optional<int> pipeline = find(AxisRole::pipeline);
  BUG_IF(!pipeline || size(*pipeline) % 2 != 0 || copies_axis(), "{} cannot have two pipeline copies", text());
  Mesh made = *this;
  made.axes[static_cast<size_t>(*pipeline)].size /= 2;
  for (const AxisDef& def : kAxes)
    if (def.pipeline_copies) made.axes.insert(made.axes.begin() + *pipeline + 1, Axis(def, 2));
  return made;
}

std::string Mesh::text() const {
  std::string out;
  for (const Axis& axis : axes) out += fmt::format("{}{}={}", out.empty() ? "" : " ", axis.name(), axis.size);
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
  return group_of(mesh, rank, indices_of(mesh, axes));
}

std::string axes_text(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ","));
}

std::string pipeline_name(const Mesh& mesh) {
  std::optional<int> axis = mesh.find(AxisRole::pipeline);
  BUG_IF(!axis, "the mesh {} has no pipeline axis", mesh.text());
  return mesh.name(*axis);
}

bool all_have_role(const Mesh& mesh, const std::vector<std::string>& axes, AxisRole role) {
  std::vector<int> indices = indices_of(mesh, axes);
  return !indices.empty() && std::ranges::all_of(indices, [&](int axis) { return mesh.role(axis) == role; });
}

bool any_differs_in_data(const Mesh& mesh, const std::vector<std::string>& axes) {
  return std::ranges::any_of(indices_of(mesh, axes), [&](int axis) { return differs_in_data(mesh.role(axis)); });
}

}  // namespace sextant
