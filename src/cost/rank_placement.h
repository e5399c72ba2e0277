// Which device each rank of a mesh sits on: ranks along one axis are neighbours, those along the next are a step of
// that many devices apart, and so on. The Programs are the same wherever ranks sit; what messages cost is not.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "mesh/mesh.h"

namespace sextant {

class RankPlacement {
 public:
  RankPlacement() = default;  // rank r on device r: the last axis of the mesh is nearest
  // Axes by name, the nearest first; those that are not named lie around them in the mesh's own order.
  explicit RankPlacement(std::vector<std::string> nearest_first) : nearest_first_(std::move(nearest_first)) {}

  std::vector<int> devices_of(const Mesh& mesh, const std::vector<int>& ranks) const;

 private:
  std::vector<std::string> nearest_first_;
};

}  // namespace sextant
