#include "train/world.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "config/load.h"
#include "run/programs.h"
#include "run/resolve_spec.h"
#include "train/data/dataset.h"

namespace sextant {

namespace {

constexpr size_t kExamples = 3;
constexpr std::array<const char*, 4> kKeys{"mesh.dp", "mesh.tp", "mesh.pp", "mesh.cp"};

using Sizes = std::array<int64_t, 4>;  // in the order of kKeys

Sizes sizes_of(const RunConfig& run) {
  return {run.mesh.dp, run.mesh.tp, run.mesh.pp, run.mesh.cp};
}

// How far two meshes are apart, in doublings of axes.
double distance(const Sizes& a, const Sizes& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += std::abs(std::log2(static_cast<double>(a[i]) / static_cast<double>(b[i])));
  return sum;
}

std::vector<int64_t> divisors(int64_t n) {
  std::vector<int64_t> found;
  for (int64_t d = 1; d <= n; ++d)
    if (n % d == 0) found.push_back(d);
  return found;
}

std::vector<Sizes> meshes_of(int64_t ranks) {
  std::vector<Sizes> found;
  for (int64_t dp : divisors(ranks))
    for (int64_t tp : divisors(ranks / dp))
      for (int64_t pp : divisors(ranks / dp / tp)) found.push_back({dp, tp, pp, ranks / dp / tp / pp});
  std::ranges::reverse(
      found);  // of two that are equally near, the one with more data parallelism, then more tensor parallelism
  return found;
}

std::vector<std::string> settings_of(const Sizes& sizes) {
  std::vector<std::string> settings;
  for (size_t i = 0; i < sizes.size(); ++i) settings.push_back(fmt::format("{}={}", kKeys[i], sizes[i]));
  return settings;
}

// The whole config with this mesh passes every check there is.
bool fits(const RunConfig& run, const Sizes& sizes) {
  try {
    RunConfig changed = parse_config(config_toml(run), run.source, settings_of(sizes));
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
  Sizes given = sizes_of(run);
  std::vector<Sizes> meshes = meshes_of(ranks);
  std::ranges::stable_sort(meshes, {}, [&](const Sizes& sizes) { return distance(sizes, given); });
  std::vector<std::string> texts;
  for (const Sizes& sizes : meshes) {
    if (texts.size() == kExamples) break;
    if (!fits(run, sizes)) continue;
    std::vector<std::string> words;
    for (size_t i = 0; i < sizes.size(); ++i)
      if (sizes[i] > 1 || given[i] > 1) words.push_back(fmt::format("{}={}", kKeys[i], sizes[i]));
    texts.push_back(fmt::format("{}", fmt::join(words, " ")));
  }
  return fmt::format("{}", fmt::join(texts, ", or "));
}

}  // namespace

void require_world(const RunConfig& run, int64_t processes, std::string_view who) {
  Sizes sizes = sizes_of(run);
  int64_t ranks = sizes[0] * sizes[1] * sizes[2] * sizes[3];
  if (processes == ranks) return;
  std::string fitting = examples(run, processes);
  throw UserError({.place = std::string(who),
                   .got = fmt::format("{} rank{}, but the mesh dp {} × tp {} × pp {} × cp {} has {}", processes,
                                      processes == 1 ? "" : "s", sizes[0], sizes[1], sizes[2], sizes[3], ranks),
                   .expected = fmt::format("{} ranks, or a mesh of {}", ranks, processes),
                   .hint = fitting.empty() ? "no mesh of this model has as many ranks" : "try " + fitting});
}

}  // namespace sextant
