#include "bench/comm/comm_device_call.h"

#include "base/error.h"
#include "passes/hops.h"
#include "passes/lower.h"

namespace sextant {

namespace {

struct LayoutChange {
  AxisState from, to;
};

LayoutChange change_of(Collective op) {
  switch (op) {
    case Collective::all_reduce:
      return {kPartial, kInvariant};
    case Collective::all_gather:
      return {sharded(0), kInvariant};
    case Collective::reduce_scatter:
      return {kPartial, sharded(0)};
    case Collective::all_to_all:
      return {sharded(0), sharded(1)};
    default:
      BUG("{} is not a change of layout", bench_name(op));
  }
}

Layout layout_with(const DeviceGroup& group, AxisState state) {
  Layout layout = invariant_layout(group.mesh);
  for (int axis : group.axes) layout.states[static_cast<size_t>(axis)] = state;
  return layout;
}

class DeviceCall final : public CommCall {
 public:
  DeviceCall(Collective op, int64_t bytes, const DeviceGroup& group)
      : CommCall(op, CommPlace::out, bytes, group_of_ranks(group_of(group.mesh, group.rank, group.axes), group.rank)) {
    LayoutChange change = change_of(op);
    GlobalShape shape = op == Collective::all_to_all ? GlobalShape{group_.size(), count_} : GlobalShape{count_};
    Graph graph{.name = std::string(bench_name(op)), .mesh = group.mesh, .values = {}, .ops = {}};
    // Kept like a weight, so that the Program can run again on it.
    ValueId given = graph.add(
        {.path = "given", .kind = ValueKind::parameter, .shape = shape, .layout = layout_with(group, change.from)});
    graph.ops = make_hops(graph, given, layout_with(group, change.to), "hop");
    Value& result = graph[graph.ops.back().outputs[0]];
    result.path = "result";
    result.kind = ValueKind::fetch;
    // On the lane that computes: there is nothing to travel beside, and its time is wanted.
    program_ = lower(std::move(graph), group.executor.target(), {.plan = {.overlap = false}, .train = {}});
    arena_ = group.executor.allocate(program_.arena_bytes);
    bound_ = group.executor.bind(program_, *arena_);
  }

  void fill() override {
    CommCall::fill();
    bound_->write(program_.at("given"), std::as_bytes(std::span(given_)));
  }

  double run() override {
    Trace trace;
    run_schedule(*bound_, &trace);
    double seconds = 0;
    for (const Event& event : trace) seconds += event.end_s - event.start_s;
    return seconds;
  }

  int64_t wrong() override {
    bound_->read(program_.at("result"), std::as_writable_bytes(std::span(result_)));
    return count_wrong();
  }

 private:
  Program program_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Bound> bound_;
};

}  // namespace

bool can_be_on_device(Collective op, size_t axes) {
  return op == Collective::all_to_all ? axes == 1 : op != Collective::broadcast && op != Collective::shift;
}

std::unique_ptr<CommCall> make_device_call(Collective op, int64_t bytes, const DeviceGroup& group) {
  return std::make_unique<DeviceCall>(op, bytes, group);
}

}  // namespace sextant
