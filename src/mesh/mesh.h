// Mesh: the ranks of a run as a grid of named axes, major axis first. Rank r of the grid sits at the coordinate that
// counts the last axis fastest. Coordinates and groups are computed, never stored.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mesh/axis.h"

namespace sextant {

class Axis {
 public:
  Axis(const AxisDef& def, int size) : size(size), def_(&def) {}  // `def` must outlive the axis
  Axis(std::string_view name, int size);                          // of kAxes; BUG when it has none of that name

  const AxisDef& def() const { return *def_; }
  std::string_view name() const { return def_->name; }
  bool operator==(const Axis& other) const { return name() == other.name() && size == other.size; }

  int size = 1;

 private:
  const AxisDef* def_;
};

using Coordinate = std::vector<int>;  // one entry per axis

struct Mesh {
  std::vector<Axis> axes;

  int axis_count() const { return static_cast<int>(axes.size()); }
  int size(int axis) const { return axes[static_cast<size_t>(axis)].size; }
  const AxisDef& def(int axis) const { return axes[static_cast<size_t>(axis)].def(); }
  AxisRole role(int axis) const { return def(axis).role; }
  std::string name(int axis) const { return std::string(def(axis).name); }
  int world_size() const;

  std::optional<int> find(std::string_view name) const;
  std::optional<int> find(AxisRole role) const;  // BUG when several have it
  std::vector<int> axes_with(AxisRole role) const;
  int ranks(AxisRole role) const;                     // the product of the sizes of its axes
  std::vector<int> axes_with(ExpertRole role) const;  // of those within a pipeline stage
  int ranks(ExpertRole role) const;
  std::vector<int> data_axes() const;      // those whose ranks use the same weights on other data
  std::optional<int> copies_axis() const;  // the one with AxisDef::pipeline_copies

  // The mesh in which the ranks of the pipeline are the two copies of half as many positions. BUG unless they are even.
  Mesh with_pipeline_copies() const;

  bool operator==(const Mesh&) const = default;
  std::string text() const;  // "pp=1 dp=2 cp=1 tp=4"
};

// "dp,cp": how reports name a group.
std::string axes_text(const std::vector<std::string>& names);

// How reports name what passes between pipeline stages: the name of the pipeline axis. BUG in a mesh without one.
std::string pipeline_name(const Mesh& mesh);

// Of a group along axes given by name, with at least one axis of the mesh among them.
bool all_have_role(const Mesh& mesh, const std::vector<std::string>& axes, AxisRole role);
bool any_differs_in_data(const Mesh& mesh, const std::vector<std::string>& axes);

Coordinate coordinate_of(const Mesh& mesh, int rank);
int rank_of(const Mesh& mesh, const Coordinate& coordinate);

// The ranks that differ from `rank` only along `axes`, in coordinate order (itself included).
std::vector<int> group_of(const Mesh& mesh, int rank, const std::vector<int>& axes);
std::vector<int> group_of(const Mesh& mesh, int rank,
                          const std::vector<std::string>& axes);  // an absent one counts as size 1

}  // namespace sextant
