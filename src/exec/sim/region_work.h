// region_work: what one run of a region takes at least, before anybody waits for anybody: the sums over its ops that
// the simulator would walk through one by one. A step can be no shorter than these sums in the order of its schedule.
#pragma once

#include "cost/price.h"
#include "ir/program.h"

namespace sextant {

// In seconds.
struct RegionWork {
  double compute = 0;   // on the compute lane, with the collectives that stand on it; not the messages between stages
  double messages = 0;  // the part of `compute` that is collectives
  double beside = 0;    // on the comm lane; of the update until the last of it that is waited for
  double copies = 0;    // the part of `beside` that is copies between spaces, which do not slow compute down
  double at_last = 0;   // on the compute lane, for the last microbatch only
  double beside_at_last = 0;
  double copies_at_last =
      0;            // of that microbatch on the comm lane, not in `beside_at_last`: the update may begin before
  double host = 0;  // of the host, to issue what is on the compute lane
  // From when the region's end until what it sends to another stage has arrived; below zero where it sends early.
  double arrives_after = 0;
};

RegionWork region_work(const Program& program, const Region& region, Pricer& pricer);

}  // namespace sextant
