// The axes of a mesh as config keys. Keys and their help, the number of ranks, checks, the meshes of Programs, search,
// launch and reports all iterate over this table.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.h"
#include "mesh/mesh.h"

namespace sextant {

constexpr int64_t kMaxRanks = int64_t{1} << 24;

struct MeshAxis {
  const AxisDef* axis;
  std::string_view key;
  int64_t MeshSection::*size;
  bool always_told = true;  // in reports and tables of runs even where it is 1
  // Where ZeRO may shard over fewer ranks than the axis has: the key that says over how many, and the axis along which
  // the others are replicas.
  int64_t MeshSection::*zero_ranks = nullptr;
  const AxisDef* replicas = nullptr;

  constexpr std::string_view name() const { return axis->name; }
  int64_t size_in(const MeshSection& mesh) const { return mesh.*size; }
};

// In the order of docs/config.md.
inline constexpr std::array<MeshAxis, 4> kMeshAxes{{
    {.axis = find_axis("dp"),
     .key = "mesh.dp",
     .size = &MeshSection::dp,
     .zero_ranks = &MeshSection::zero_ranks,
     .replicas = find_axis("dp_out")},
    {.axis = find_axis("tp"), .key = "mesh.tp", .size = &MeshSection::tp},
    {.axis = find_axis("pp"), .key = "mesh.pp", .size = &MeshSection::pp},
    {.axis = find_axis("cp"), .key = "mesh.cp", .size = &MeshSection::cp, .always_told = false},
}};

// How experts lie on the ranks of a stage: how much of dp, cp and tp the ranks take among which experts are divided,
// and those that hold parts of the same experts.
struct ExpertMesh {
  int64_t dp = 1, cp = 1, tp = 1;  // ranks that divide experts
  int64_t etp = 1;
  std::string error = {};  // what does not fit, and what would: "", or as a complaint says it
  std::string expected = {};
};
ExpertMesh expert_mesh_of(const MeshSection& mesh);

// The row of a size, such as &MeshSection::dp. BUG when it is none of an axis.
const MeshAxis& axis_of(int64_t MeshSection::*size);

// The product of all sizes. As a double it is right even where 64 bits are too few.
int64_t ranks_of(const MeshSection& mesh);
double ranks_as_double(const MeshSection& mesh);

// "dp 2 × tp 4 × pp 1 × cp 1"
std::string sizes_text(const MeshSection& mesh, std::string_view separator = " × ");

// "mesh.dp", …: for complaints about the product.
std::vector<std::string> axis_keys();

// The mesh of a run's ranks, in the order of kAxes; a schedule with two copies of the model splits the pipeline's ranks
// further.
Mesh mesh_of(const MeshSection& mesh);

}  // namespace sextant
