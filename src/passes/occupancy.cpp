#include "passes/occupancy.h"

#include <algorithm>
#include <iterator>

namespace sextant {

void Stretches::add(Stretch more) {
  if (more.begin == more.end) return;
  auto next = ends_.upper_bound(more.begin);
  auto into = next == ends_.begin() ? ends_.end() : std::prev(next);
  if (into == ends_.end() || into->second < more.begin)
    into = ends_.emplace_hint(next, more.begin, more.end);
  else
    into->second = std::max(into->second, more.end);
  while (next != ends_.end() && next->first <= into->second) {
    into->second = std::max(into->second, next->second);
    next = ends_.erase(next);
  }
}

int64_t Stretches::lowest_gap(int64_t from, int64_t bytes) const {
  auto at = ends_.upper_bound(from);
  if (at != ends_.begin() && std::prev(at)->second > from) --at;
  for (; at != ends_.end() && at->first < from + bytes; ++at) from = at->second;
  return from;
}

Occupancy::Occupancy(int ops) {
  while (leaves_ < ops) leaves_ *= 2;
  nodes_.resize(2 * static_cast<size_t>(leaves_));
}

template <class Meets, class Fills>
void Occupancy::visit(const Lifetime& life, Meets meets, Fills fills) const {
  struct Range {
    size_t node;
    int first, last;
  };
  Range open[64];  // the depth of the tree bounds how many wait
  size_t waiting = 0;
  open[waiting++] = {1, 0, leaves_ - 1};
  while (waiting > 0) {
    Range range = open[--waiting];
    if (life.first <= range.first && range.last <= life.last) {
      fills(range.node);
      continue;
    }
    meets(range.node);
    int middle = range.first + (range.last - range.first) / 2;
    if (life.last > middle) open[waiting++] = {2 * range.node + 1, middle + 1, range.last};
    if (life.first <= middle) open[waiting++] = {2 * range.node, range.first, middle};
  }
}

void Occupancy::add_to(int32_t& set, Stretch bytes) {
  if (set < 0) {
    set = static_cast<int32_t>(sets_.size());
    sets_.emplace_back();
  }
  sets_[static_cast<size_t>(set)].add(bytes);
}

void Occupancy::take(const Lifetime& life, Stretch bytes) {
  visit(
      life, [&](size_t node) { add_to(nodes_[node].sometime, bytes); },
      [&](size_t node) {
        add_to(nodes_[node].throughout, bytes);
        add_to(nodes_[node].sometime, bytes);
      });
}

int64_t Occupancy::lowest_gap(const Lifetime& life, int64_t from, int64_t bytes) const {
  in_the_way_.clear();
  auto look_at = [&](int32_t set) {
    if (set >= 0) in_the_way_.push_back(&sets_[static_cast<size_t>(set)]);
  };
  visit(
      life, [&](size_t node) { look_at(nodes_[node].throughout); },
      [&](size_t node) { look_at(nodes_[node].sometime); });
  // Every set in turn moves the place up, until one round moves it no more.
  for (size_t agreed = 0, i = 0; agreed < in_the_way_.size(); i = i + 1 == in_the_way_.size() ? 0 : i + 1) {
    int64_t moved = in_the_way_[i]->lowest_gap(from, bytes);
    agreed = moved == from ? agreed + 1 : 1;  // the set that moved it agrees with where it now is
    from = moved;
  }
  return from;
}

}  // namespace sextant
