#include "exec/sim/region_work.h"

#include <algorithm>
#include <vector>

#include "exec/sim/rank_walk.h"
#include "ir/lane.h"

namespace sextant {

RegionWork region_work(const Program& program, const Region& region, Pricer& pricer) {
  RegionWork work;
  struct Sent {
    double at, seconds;
  };
  std::vector<Sent> sent;
  const double launch_s = pricer.profile().host_s_per_kernel;
  for (const PricedOp& priced : price_region(program, region, pricer)) {
    const OpPrice& price = priced.price;
    if (priced.op->runs_for == RunsFor::first_microbatch) continue;  // once a step: a bound may leave it out
    if (launch_s > 0 && !priced.on_lane && !last_microbatch_only(*priced.op))
      work.host += launch_s * price.kernels + price.host_s;
    if (price.message == Collective::receive) continue;
    if (price.message == Collective::send) {
      sent.push_back({work.compute, price.seconds});
      continue;
    }
    double seconds = price.message && !priced.on_lane ? priced.waited_s : price.seconds;
    if (priced.on_lane) {
      (last_microbatch_only(*priced.op) ? work.beside_at_last : work.beside) += seconds;
    } else if (last_microbatch_only(*priced.op)) {
      work.at_last += seconds;
    } else {
      work.compute += seconds;
      work.messages += price.message ? seconds : 0;
    }
  }
  for (size_t i = 0; i < sent.size(); ++i) {
    double after = sent[i].seconds - (work.compute - sent[i].at);
    work.arrives_after = i == 0 ? after : std::min(work.arrives_after, after);
  }
  return work;
}

}  // namespace sextant
