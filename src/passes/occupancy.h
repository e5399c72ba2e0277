// Which bytes of the arena are taken when. Asked for the lowest place where something that lives from one op to another
// fits, it looks at merged stretches of what lives then, not at each buffer: a model with many blocks has buffers in
// proportion to its depth, most of them alive at the same time, and a look at each for each would take time in
// proportion to its square.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "ir/lifetime.h"

namespace sextant {

// Bytes [begin, end).
struct Stretch {
  int64_t begin = 0, end = 0;
};

// A set of bytes: stretches in order; those that touch are one.
class Stretches {
 public:
  void add(Stretch more);
  // The lowest offset from `from` on where `bytes` are free.
  int64_t lowest_gap(int64_t from, int64_t bytes) const;

 private:
  std::map<int64_t, int64_t> ends_;  // by begin
};

// A tree over time, in ops: a node stands for a range of ops, its children for the two halves.
class Occupancy {
 public:
  // Lifetimes are within [0, ops).
  explicit Occupancy(int ops);

  void take(const Lifetime& life, Stretch bytes);
  int64_t lowest_gap(const Lifetime& life, int64_t from, int64_t bytes) const;

 private:
  struct Node {
    int32_t throughout = -1;  // set of what lives during all of the range, but not during all of the parent's
    int32_t sometime =
        -1;  // set of what lives at some time of the range, without what the ancestors have in `throughout`
  };
  // The nodes that a lifetime visits: those whose range it only meets, and the largest whose range it fills.
  template <class Meets, class Fills>
  void visit(const Lifetime& life, Meets meets, Fills fills) const;
  void add_to(int32_t& set, Stretch bytes);

  int leaves_ = 1;           // a power of two
  std::vector<Node> nodes_;  // the root is 1, the children of i are 2i and 2i + 1
  std::vector<Stretches> sets_;
  mutable std::vector<const Stretches*> in_the_way_;  // of the current question
};

}  // namespace sextant
