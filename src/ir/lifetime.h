// When a value's bytes are in use, in ops counted over all regions of a Program in order. Values that share a buffer
// (one updates the other in place) share its lifetime.
//
// When a microbatch is finished before the next begins, that order is the order of time. Otherwise a value that is made
// in one region and used in another may be alive while any region runs, and there may be one for each microbatch in
// flight: it lives throughout, in several slots.
#pragma once

#include <vector>

#include "ir/program.h"

namespace sextant {

struct Lifetime {
  int first = -1;  // op that makes it; 0 for feeds
  int last = -1;   // op that reads it last
  bool used() const { return first >= 0; }
};

// Whether a step's gradients are sums over microbatches: they then live throughout. The gradient of a single microbatch
// lives only from the op that begins it to the end of the step, where the activations of forward have been.
bool has_several_microbatches(const Program& program);

// Indexed by value id. Persistent values live throughout: [0, ops). Fetches live to the end.
std::vector<Lifetime> lifetimes(const Program& program);

// One kind of pair in the schedule. Its two regions run at the same time, so that what each of them keeps to itself
// must not share bytes with what the other does: there, a lifetime counts the steps of the pair (ir/walk.h).
struct PairLifetimes {
  int steps = 0;
  std::vector<Lifetime> values;  // by id; unused where the pair has nothing to do with it
  std::vector<int> started;      // by number of the op: the step that starts it, -1 where none does
};

std::vector<PairLifetimes> pair_lifetimes(const Program& program);

// For each value the regions (indices) that touch it; a value under way in a message counts as touched by the backward
// region of its chunk, before which it has arrived.
std::vector<std::vector<int>> regions_touching(const Program& program);

// The largest number of microbatches that are, at one time, between their first and their last action in these regions.
int microbatches_in_flight(const Program& program, const std::vector<int>& regions);

// Whether regions run in another order than they stand in: a microbatch begins before another one is finished, there
// are several chunks, or weight gradients are deferred.
bool regions_interleave(const Program& program);

}  // namespace sextant
