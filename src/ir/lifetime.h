// When a value's bytes are in use, in ops counted over all regions of a Program in order. Values that share a buffer (one
// updates the other in place) share its lifetime.
#pragma once

#include <vector>

#include "ir/program.h"

namespace sextant {

struct Lifetime {
  int first = -1;  // op that makes it; 0 for feeds
  int last = -1;   // op that reads it last
  bool used() const { return first >= 0; }
};

// Indexed by value id. Persistent values live throughout: [0, ops). Fetches live to the end.
std::vector<Lifetime> lifetimes(const Program& program);

}  // namespace sextant
