// Mesh: the ranks of a run as a grid of named axes, major axis first. Rank r of the grid sits at the coordinate that
// counts the last axis fastest. Coordinates and groups are computed, never stored.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sextant {

struct Axis {
  std::string name;  // "pp", "dp", "cp", "tp", …
  int size = 1;
  bool operator==(const Axis&) const = default;
};

// The axis along which ranks hold different parts of the program, not of its tensors: no op has rows for it.
inline constexpr std::string_view kPipelineAxis = "pp";
// Along which the GEMMs of a block are split.
inline constexpr std::string_view kTensorAxis = "tp";

using Coordinate = std::vector<int>;  // one entry per axis

struct Mesh {
  std::vector<Axis> axes;

  int axis_count() const { return static_cast<int>(axes.size()); }
  int size(int axis) const { return axes[static_cast<size_t>(axis)].size; }
  int world_size() const;
  std::optional<int> find(std::string_view name) const;
  bool operator==(const Mesh&) const = default;
  std::string text() const;  // "pp=1 dp=2 cp=1 tp=4"
};

// "dp,cp": how reports name a group.
std::string axes_text(const std::vector<std::string>& names);

Coordinate coordinate_of(const Mesh& mesh, int rank);
int rank_of(const Mesh& mesh, const Coordinate& coordinate);

// The ranks that differ from `rank` only along `axes`, in coordinate order (itself included).
std::vector<int> group_of(const Mesh& mesh, int rank, const std::vector<int>& axes);
std::vector<int> group_of(const Mesh& mesh, int rank,
                          const std::vector<std::string>& axes);  // an absent one counts as size 1

}  // namespace sextant
