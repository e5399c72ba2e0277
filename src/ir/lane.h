// Queries about an op's lane and microbatches, for passes and executors.
#pragma once

#include "ir/op.h"

namespace sextant {

inline bool on_comm_lane(const Op& op) {
  return op.lane == Lane::comm;
}
inline bool once_per_step(const Op& op) {
  return op.runs_for != RunsFor::every_microbatch;
}
inline bool last_microbatch_only(const Op& op) {
  return op.runs_for == RunsFor::last_microbatch;
}

}  // namespace sextant
