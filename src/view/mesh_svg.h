// The mesh as a picture: for each axis some nodes with their devices, coloured by their place along it, and one group
// of ranks that talk to each other joined by a line, with its size, whether it stays inside a node, and what a rank
// sends along it. In: the mesh and what a rank sends in a step. Out: SVG texts; of many nodes those are drawn in which
// the group begins and ends.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "mesh/mesh.h"

namespace sextant {

struct MeshPicture {
  Mesh mesh;
  int64_t devices_per_node = 0;         // 0: not known
  std::map<std::string, int64_t> sent;  // bytes of one rank in a step, by axes: "tp", "dp,cp"
};

// One per axis with more than one rank, and per set of axes along which much is sent; one for a single rank.
std::vector<std::string> mesh_panels(const MeshPicture& picture);

// All of them in one.
std::string mesh_svg(const MeshPicture& picture);

}  // namespace sextant
