#include "train/world.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "config/load.h"
#include "config/mesh_axes.h"
#include "run/programs.h"
#include "run/resolve_spec.h"
#include "train/data/dataset.h"

namespace sextant {

namespace {

constexpr size_t kExamples = 3;

// How far two meshes are apart, in doublings of axes.
double distance(const MeshSection& a, const MeshSection& b) {
  double sum = 0;
  for (const MeshAxis& axis : kMeshAxes)
    sum += std::abs(std::log2(static_cast<double>(axis.size_in(a)) / static_cast<double>(axis.size_in(b))));
  return sum;
}

std::vector<int64_t> divisors(int64_t n) {
  std::vector<int64_t> found;
  for (int64_t d = 1; d <= n; ++d)
    if (n % d == 0) found.push_back(d);
  return found;
}

// Every way to give `ranks` to the axes from `axis` on; the first axes have what `so_far` says.
void add_meshes(MeshSection so_far, int64_t ranks, size_t axis, std::vector<MeshSection>& found) {
  if (axis + 1 == kMeshAxes.size()) {
    so_far.*kMeshAxes[axis].size = ranks;
    found.push_back(so_far);
    return;
  }
  for (int64_t size : divisors(ranks)) {
    so_far.*kMeshAxes[axis].size = size;
    add_meshes(so_far, ranks / size, axis + 1, found);
  }
}

std::vector<MeshSection> meshes_of(int64_t ranks) {
  std::vector<MeshSection> found;
  add_meshes({}, ranks, 0, found);
  // Of two that are equally near, the one with more data parallelism, then more tensor parallelism.
  std::ranges::reverse(found);
  return found;
}

std::string setting_of(const MeshAxis& axis, const MeshSection& mesh) {
  return fmt::format("{}={}", axis.key, axis.size_in(mesh));
}

// The whole config with the sizes of this mesh passes every check there is.
bool fits(const RunConfig& run, const MeshSection& mesh) {
  std::vector<std::string> settings;
  for (const MeshAxis& axis : kMeshAxes) settings.push_back(setting_of(axis, mesh));
  try {
    RunConfig changed = parse_config(config_toml(run), run.source, settings);
    run_shape(changed, resolve_spec(changed));
    return true;
  } catch (const UserError&) {
    return false;
  }
}

// "mesh.dp=4, or mesh.dp=2 mesh.tp=2": axes of size 1 are named only where the config has them larger.
std::string examples(const RunConfig& run, int64_t ranks) {
  constexpr int64_t kMostRanks = 1 << 20;
  if (ranks < 1 || ranks > kMostRanks) return "";
  std::vector<MeshSection> meshes = meshes_of(ranks);
  std::ranges::stable_sort(meshes, {}, [&](const MeshSection& mesh) { return distance(mesh, run.mesh); });
  std::vector<std::string> texts;
  for (const MeshSection& mesh : meshes) {
    if (texts.size() == kExamples) break;
    if (!fits(run, mesh)) continue;
    std::vector<std::string> words;
    for (const MeshAxis& axis : kMeshAxes)
      if (axis.size_in(mesh) > 1 || axis.size_in(run.mesh) > 1) words.push_back(setting_of(axis, mesh));
    texts.push_back(fmt::format("{}", fmt::join(words, " ")));
  }
  return fmt::format("{}", fmt::join(texts, ", or "));
}

}  // namespace

void require_world(const RunConfig& run, int64_t processes, std::string_view who) {
  int64_t ranks = ranks_of(run.mesh);
  if (processes == ranks) return;
  std::string fitting = examples(run, processes);
  throw UserError({.place = std::string(who),
                   .got = fmt::format("{} rank{}, but the mesh {} has {}", processes, processes == 1 ? "" : "s",
                                      sizes_text(run.mesh), ranks),
                   .expected = fmt::format("{} ranks, or a mesh of {}", ranks, processes),
                   .hint = fitting.empty() ? "no mesh of this model has as many ranks" : "try " + fitting});
}

}  // namespace sextant
