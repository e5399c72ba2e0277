#include "bench/op_samples.h"

#include <algorithm>

#include "bench/statistics.h"
#include "cost/measured_ops.h"
#include "ir/lane.h"
#include "ir/walk.h"

namespace sextant {

namespace {

// The ops of a step in the order in which executors run and trace them.
std::vector<const Op*> ops_in_order(const Program& program) {
  std::vector<const Op*> order;
  Walk walk(program);
  for_each_unit(program.schedule, [&](std::span<const Action> unit) {
    for (const WalkStep& step : walk.steps(unit))
      if (step.kind == WalkStep::Kind::start) {
        const Op& op = walk.op(step.op);
        if (!on_comm_lane(op)) order.push_back(&op);
      }
  });
  return order;
}

double ranks_of(const Program& program, const Message& message) {
  double ranks = 1;
  for (const Axis& axis : program.mesh.axes)
    if (std::ranges::count(message.axes, axis.name()) > 0) ranks *= axis.size;
  return ranks;
}

}  // namespace

void OpSamples::add(const LoweredRun& lowered, const StepTimes& times) {
  // All ranks of a Program go through the same ops, so their events stand side by side.
  for (size_t stage = 0; stage < lowered.programs.train.size(); ++stage) {
    const Program& program = lowered.programs.train[stage];
    std::vector<const Op*> order = ops_in_order(program);
    std::vector<size_t> members;
    for (size_t rank = 0; rank < times.traces.size(); ++rank)
      if (stage_rank_of(lowered.shape.mesh, static_cast<int>(rank)) == static_cast<int>(stage)) members.push_back(rank);
    for (size_t step = 0; step < times.traces[members[0]].size(); ++step)
      for (size_t i = 0; i < order.size(); ++i) {
        const Op& op = *order[i];
        std::optional<Message> message = local_message(program, op);
        double least = 1e300;
        for (size_t rank : members) {
          const Trace& trace = times.traces[rank][step];
          if (trace.size() != order.size() || trace[i].name != op.def->name) continue;
          double seconds = trace[i].end_s - trace[i].start_s;
          least = std::min(least, seconds);
          if (!message) add(std::string(op.def->name), size_of_op(local_cost(program, op)), seconds);
        }
        if (!message || message->between_stages() || least == 1e300) continue;
        double ranks = ranks_of(program, *message);
        if (ranks > 1) add(std::string(name_of(message->kind)), {ranks, static_cast<double>(message->bytes.n)}, least);
      }
  }
}

std::map<std::string, std::vector<MeasuredOp>> OpSamples::table() const {
  std::map<std::string, std::vector<MeasuredOp>> table;
  for (const auto& [name, sizes] : samples_)
    for (const auto& [size, seconds] : sizes)
      if (double typical = quantile_of(seconds, 0.25); typical > 0) table[name].push_back({size, typical});
  return table;
}

}  // namespace sextant
