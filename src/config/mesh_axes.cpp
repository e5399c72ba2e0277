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

// Numbers of an axis's ranks: `expert` ranks divide the experts, `tensor` ranks hold parts of the same experts.
struct ExpertShare {
  int64_t expert = 1, tensor = 1;
};

ExpertShare share_of(const MeshAxis& row, const ExpertMesh& experts) {
  if (row.size == &MeshSection::dp) return {.expert = experts.dp};
  if (row.size == &MeshSection::cp) return {.expert = experts.cp};
  if (row.size == &MeshSection::tp) return {.expert = experts.tp, .tensor = experts.etp};
  return {};
}

// How many ranks an axis of kAxes has in a run; 1 when the config says nothing of it. The ranks of a row of kMeshAxes
// are split among the axes of its role by what they are to experts.
int64_t size_of_axis(const AxisDef& def, const MeshSection& mesh, const ExpertMesh& experts) {
  if (def.pipeline_copies) return 1;  // where a schedule asks for it, the pipeline's ranks are split
  for (const MeshAxis& row : kMeshAxes) {
    int64_t size = row.size_in(mesh);
    int64_t sharing = row.zero_ranks && mesh.*row.zero_ranks > 0 ? mesh.*row.zero_ranks : size;
    if (row.replicas == &def) return size / sharing;
    if (row.axis->role != def.role) continue;
    ExpertShare share = share_of(row, experts);
    switch (def.experts) {
      case ExpertRole::expert:
        return share.expert;
      case ExpertRole::tensor:
        return share.tensor;
      case ExpertRole::data:
        return sharing / share.expert / share.tensor;
    }
  }
  return 1;
}

}  // namespace

namespace {

// Divides `ep` by what it takes of each part in turn, the ranks nearest to each other first: the rest of tp, cp whole
// or not at all, dp. False where something is left, or a part would have to be cut in another way.
bool take_parts(const MeshSection& mesh, int64_t ep, ExpertMesh& made) {
  auto take = [&](int64_t ranks, int64_t& taken) {
    if (ep % ranks == 0)
      taken = ranks;
    else if (ranks % ep == 0)
      taken = ep;
    ep /= taken;
    return taken == ranks || ep == 1;
  };
  if (!take(mesh.tp / made.etp, made.tp)) return false;
  if (ep == 1) return true;
  if (ep % mesh.cp != 0 || !take(mesh.cp, made.cp)) return false;
  return take(mesh.zero_ranks > 0 ? mesh.zero_ranks : mesh.dp, made.dp) && ep == 1;
}

}  // namespace

ExpertMesh expert_mesh_of(const MeshSection& mesh) {
  ExpertMesh made{.etp = mesh.etp > 0 ? mesh.etp : mesh.tp};
  if (mesh.tp % made.etp != 0) {
    made.error = fmt::format("etp {} does not divide tp {}", made.etp, mesh.tp);
    made.expected = fmt::format("0, or a divisor of {}", mesh.tp);
    return made;
  }
  if (take_parts(mesh, mesh.ep, made)) return made;
  int64_t rest = mesh.tp / made.etp, sharing = mesh.zero_ranks > 0 ? mesh.zero_ranks : mesh.dp;
  made.error = fmt::format("ep {} cannot be made of tp/etp {}, cp {} and {} {}", mesh.ep, rest, mesh.cp,
                           mesh.zero_ranks > 0 ? "zero_ranks" : axis_of(&MeshSection::dp).name(), sharing);
  // Sizes that take_parts accepts: a divisor of tp/etp, or all of tp/etp and cp with a divisor of dp (zero_ranks).
  constexpr size_t kMostNamed = 12;
  std::vector<int64_t> sizes;
  for (int64_t part = 1; part <= rest; ++part)
    if (rest % part == 0) sizes.push_back(part);
  for (int64_t part = 1; part <= sharing && rest * mesh.cp * part <= kMaxRanks; ++part)
    if (sharing % part == 0 && rest * mesh.cp * part > sizes.back()) sizes.push_back(rest * mesh.cp * part);
  if (sizes.size() > kMostNamed) sizes.resize(kMostNamed);
  for (size_t i = 0; i < sizes.size(); ++i)
    made.expected += fmt::format("{}{}", i == 0 ? "" : i + 1 == sizes.size() ? " or " : ", ", sizes[i]);
  return made;
}

Mesh mesh_of(const MeshSection& mesh) {
  Mesh made;
  ExpertMesh experts = expert_mesh_of(mesh);
  BUG_IF(!experts.error.empty(), "{}", experts.error);
  for (const AxisDef& def : kAxes) {
    int64_t size = size_of_axis(def, mesh, experts);
    if (size > 1 || !def.only_if_split) made.axes.push_back({def, static_cast<int>(size)});
  }
  return made;
}

}  // namespace sextant
