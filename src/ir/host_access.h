// When the host touches the values of a step. Those who write feeds and read fetches follow it, and verify_memory holds
// the Program to it: bytes are free for others before and after.
//
//   feed with dims   holds one microbatch's data: written before the unit starts that runs the first region to read it
//   scalar feed      holds for the whole step: written before its first unit
//   fetch            read when the unit has run whose region makes it, before the next one starts; what the last
//                    microbatch left can be read again when the step has ended
#pragma once

#include <vector>

#include "ir/program.h"

namespace sextant {

// A value that the host touches along with each action that runs this region.
struct HostAccess {
  ValueId value = kNoValue;
  RegionKind region = RegionKind::forward;
  int chunk = 0;

  bool is_at(const Action& action) const { return action.region == region && action.chunk == chunk; }
};

bool is_of_step(const Value& feed);

// Feeds of microbatches that ops read, and fetches; in the order of the Program's values.
std::vector<HostAccess> microbatch_feeds(const Program& program);
std::vector<HostAccess> fetches(const Program& program);

}  // namespace sextant
