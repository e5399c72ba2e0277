#include "exec/sim/region_work.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "exec/sim/rank_walk.h"
#include "ir/lane.h"

namespace sextant {

namespace {

// Seconds on the comm lane, one after the other, until the last of it that an op of the compute lane reads.
double blocking_comm_seconds(const std::vector<PricedOp>& ops) {
  std::unordered_map<ValueId, double> made;  // on the lane: when
  double lane = 0, waited = 0;
  for (const PricedOp& op : ops) {
    if (op.on_lane) {
      lane += op.price.seconds;
      for (ValueId id : op.op->outputs) made[id] = lane;
      continue;
    }
    for (ValueId id : op.op->inputs)
      if (auto found = made.find(id); found != made.end()) waited = std::max(waited, found->second);
  }
  return waited;
}

}  // namespace

RegionWork region_work(const Program& program, const Region& region, Pricer& pricer) {
  RegionWork work;
  struct Sent {
    double at, seconds;
  };
  std::vector<Sent> sent;
  const double launch_s = pricer.profile().host_s_per_kernel;
  const std::vector<PricedOp> ops = price_region(program, region, pricer);
  for (const PricedOp& priced : ops) {
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
      const bool copies = priced.op->def->between_spaces, at_last = last_microbatch_only(*priced.op);
      if (at_last)
        (copies ? work.copies_at_last : work.beside_at_last) += seconds;
      else
        work.beside += seconds, work.copies += copies ? seconds : 0;
    } else if (last_microbatch_only(*priced.op)) {
      work.at_last += seconds;
    } else {
      work.compute += seconds;
      work.messages += price.message ? seconds : 0;
    }
  }
  if (region.kind == RegionKind::update) work.beside = blocking_comm_seconds(ops);
  for (size_t i = 0; i < sent.size(); ++i) {
    double after = sent[i].seconds - (work.compute - sent[i].at);
    work.arrives_after = i == 0 ? after : std::min(work.arrives_after, after);
  }
  return work;
}

}  // namespace sextant
