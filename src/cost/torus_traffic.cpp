#include "cost/torus_traffic.h"

#include <algorithm>
#include <set>

namespace sextant {

namespace {

// The part of an axis that a group has: every `step`th place, `count` of them.
struct AxisPart {
  double count = 1, step = 1;
  bool wraps = false;  // all the way around
};

std::vector<int64_t> torus_coordinate(const Torus& torus, int64_t unit) {
  std::vector<int64_t> at;
  for (int64_t size : torus.shape) at.push_back(unit % size), unit /= size;
  return at;
}

// Along each axis that the group extends over, or nothing where it is no regular box of the grid.
std::vector<AxisPart> box_of(const Torus& torus, const std::vector<int64_t>& units) {
  std::vector<std::set<int64_t>> places(torus.shape.size());
  for (int64_t unit : units) {
    std::vector<int64_t> at = torus_coordinate(torus, unit);
    for (size_t a = 0; a < at.size(); ++a) places[a].insert(at[a]);
  }
  std::vector<AxisPart> parts;
  size_t box = 1;
  for (size_t a = 0; a < places.size(); ++a) {
    if (places[a].size() < 2) continue;
    std::vector<int64_t> on(places[a].begin(), places[a].end());
    int64_t step = on[1] - on[0], count = static_cast<int64_t>(on.size());
    for (size_t i = 1; i < on.size(); ++i)
      if (on[i] - on[i - 1] != step) return {};
    parts.push_back({.count = static_cast<double>(count),
                     .step = static_cast<double>(step),
                     .wraps = count * step == torus.shape[a]});
    box *= on.size();
  }
  return box == units.size() ? parts : std::vector<AxisPart>{};
}

// Of a gather's bytes, what the busiest link carries. The data is cut into as many parts as there are axes, and each
// part goes along the axes in an order that begins with another: along the n-th axis of its order it is as large as
// the axes before have made it. A ring sends half each way; on a line the last receives everything over one link. The
// devices between two of a group send as much for groups of their own.
double busiest_of_gather(const std::vector<AxisPart>& parts) {
  double units = 1, most = 0;
  for (const AxisPart& part : parts) units *= part.count;
  for (size_t axis = 0; axis < parts.size(); ++axis) {
    double received = 0;
    for (size_t begin = 0; begin < parts.size(); ++begin) {
      double gathered = 1;
      for (size_t i = begin; i % parts.size() != axis; ++i) gathered *= parts[i % parts.size()].count;
      received += gathered * (parts[axis].count - 1) / units;
    }
    received /= static_cast<double>(parts.size());
    most = std::max(most, received * parts[axis].step / (parts[axis].wraps ? 2 : 1));
  }
  return most;
}

// Of what a device sends evenly to all: messages go along one axis after the other, the short way around.
double busiest_of_exchange(const std::vector<AxisPart>& parts) {
  double most = 0;
  for (const AxisPart& part : parts) {
    auto count = static_cast<int64_t>(part.count);
    int64_t half = count / 2;
    double crossing = static_cast<double>(half * (count - half)) / part.count;  // the middle of a line
    most = std::max(most, part.step * crossing / (part.wraps ? 2 : 1));
  }
  return most;
}

double most_hops(const Torus& torus, int64_t from, int64_t to) {
  std::vector<int64_t> a = torus_coordinate(torus, from), b = torus_coordinate(torus, to);
  int64_t most = 1;
  for (size_t i = 0; i < a.size(); ++i) {
    int64_t way = std::abs(a[i] - b[i]);
    most = std::max(most, std::min(way, torus.shape[i] - way));
  }
  return static_cast<double>(most);
}

}  // namespace

TrafficShares torus_traffic(const Torus& torus, int64_t unit_devices, const std::vector<int64_t>& devices) {
  int64_t all = 1;
  for (int64_t size : torus.shape) all *= size;
  std::set<int64_t> distinct;
  for (int64_t device : devices) distinct.insert(device / unit_devices % all);
  std::vector<int64_t> units(distinct.begin(), distinct.end());
  if (units.size() < 2) return {};
  double links = 2 * static_cast<double>(torus.shape.size()), n = static_cast<double>(units.size());
  std::vector<AxisPart> parts = box_of(torus, units);
  // A group that is not a box is treated as a line: one link towards each neighbour.
  if (parts.empty()) parts = {{.count = n}};
  double elsewhere = (n - 1) / n;
  return {.ring = std::min(1.0, elsewhere / (links * busiest_of_gather(parts))),
          .exchange = std::min(1.0, elsewhere / (links * busiest_of_exchange(parts))),
          .message = 1 / (links * most_hops(torus, units[0], units[1]))};
}

}  // namespace sextant
