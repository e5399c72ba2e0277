#include "passes/occupancy.h"

#include <algorithm>

namespace sextant {

void Stretches::add(Stretch more) {
  if (more.begin == more.end) return;
  auto first = std::lower_bound(sorted_.begin(), sorted_.end(), more.begin,
                                [](const Stretch& s, int64_t begin) { return s.end < begin; });
  auto last = first;  // behind those that `more` meets or touches
  for (; last != sorted_.end() && last->begin <= more.end; ++last) {
    more.begin = std::min(more.begin, last->begin);
    more.end = std::max(more.end, last->end);
  }
  if (first == last) {
    sorted_.insert(first, more);
    return;
  }
  *first = more;
  sorted_.erase(first + 1, last);
}

int64_t Stretches::lowest_gap(int64_t from, int64_t bytes) const {
  auto at = std::lower_bound(sorted_.begin(), sorted_.end(), from,
                             [](const Stretch& s, int64_t offset) { return s.end <= offset; });
  for (; at != sorted_.end() && at->begin < from + bytes; ++at) from = at->end;
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
      life, [&](size_t node) { look_at(nodes_[node].throughout); }, [&](size_t node) { look_at(nodes_[node].sometime); });
  // Every set in turn moves the place up, until one round moves it no more.
  for (size_t agreed = 0, i = 0; agreed < in_the_way_.size(); i = i + 1 == in_the_way_.size() ? 0 : i + 1) {
    int64_t moved = in_the_way_[i]->lowest_gap(from, bytes);
    agreed = moved == from ? agreed + 1 : 1;  // the set that moved it agrees with where it now is
    from = moved;
  }
  return from;
}

}  // namespace sextant
