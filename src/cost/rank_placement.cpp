#include "cost/rank_placement.h"

#include <algorithm>
#include <optional>

#include "base/error.h"

namespace sextant {

std::vector<int> RankPlacement::devices_of(const Mesh& mesh, const std::vector<int>& ranks) const {
  if (nearest_first_.empty()) return ranks;
  std::vector<int> order;
  for (const std::string& name : nearest_first_) {
    std::optional<int> axis = mesh.find(name);
    BUG_IF(!axis || std::ranges::count(order, *axis) > 0, "placement {} of mesh {}", axes_text(nearest_first_),
           mesh.text());
    order.push_back(*axis);
  }
  for (int axis = mesh.axis_count(); axis-- > 0;)
    if (std::ranges::count(order, axis) == 0) order.push_back(axis);
  std::vector<int> strides(order.size());
  int stride = 1;
  for (int axis : order) {
    strides[static_cast<size_t>(axis)] = stride;
    stride *= mesh.size(axis);
  }
  std::vector<int> devices;
  devices.reserve(ranks.size());
  for (int rank : ranks) {
    Coordinate at = coordinate_of(mesh, rank);
    int device = 0;
    for (size_t axis = 0; axis < at.size(); ++axis) device += at[axis] * strides[axis];
    devices.push_back(device);
  }
  return devices;
}

}  // namespace sextant
