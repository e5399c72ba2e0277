#include "config/mesh_axes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace sextant {

const MeshAxis& axis_of(int64_t MeshSection::*size) {
  auto found = std::ranges::find(kMeshAxes, size, &MeshAxis::size);
  BUG_IF(found == kMeshAxes.end(), "a size of no axis");
  return *found;
}

int64_t ranks_of(const MeshSection& mesh) {
  int64_t ranks = 1;
  for (const MeshAxis& axis : kMeshAxes) ranks *= axis.size_in(mesh);
  return ranks;
}

double ranks_as_double(const MeshSection& mesh) {
  double ranks = 1;
  for (const MeshAxis& axis : kMeshAxes) ranks *= static_cast<double>(axis.size_in(mesh));
  return ranks;
}

std::string sizes_text(const MeshSection& mesh, std::string_view separator) {
  std::string text;
  for (const MeshAxis& axis : kMeshAxes)
    text += fmt::format("{}{} {}", text.empty() ? std::string_view() : separator, axis.name(), axis.size_in(mesh));
  return text;
}

std::vector<std::string> axis_keys() {
  std::vector<std::string> keys;
  for (const MeshAxis& axis : kMeshAxes) keys.emplace_back(axis.key);
  return keys;
}

namespace {

// How many ranks an axis of kAxes has in a run; 1 when the config says nothing of it.
int64_t size_of_axis(const AxisDef& def, const MeshSection& mesh) {
  for (const MeshAxis& row : kMeshAxes) {
    int64_t size = row.size_in(mesh);
    int64_t sharing = row.zero_ranks && mesh.*row.zero_ranks > 0 ? mesh.*row.zero_ranks : size;
    if (row.axis == &def) return sharing;
    if (row.replicas == &def) return size / sharing;
  }
  return 1;
}

}  // namespace

Mesh mesh_of(const MeshSection& mesh) {
  Mesh made;
  for (const AxisDef& def : kAxes) {
    int64_t size = size_of_axis(def, mesh);
    if (size > 1 || !def.only_if_split) made.axes.push_back({def, static_cast<int>(size)});
  }
  return made;
}

}  // namespace sextant
