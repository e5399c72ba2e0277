#include "bench/one_op.h"

#include "base/bf16.h"
#include "base/error.h"
#include "base/rng.h"
#include "models/model.h"
#include "passes/lower.h"

namespace sextant {

namespace {

Graph graph_of(const OneOpSpec& spec) {
  Graph graph{.name = std::string(spec.def.name), .mesh = single_rank_mesh(), .values = {}, .ops = {}};
  Layout whole{.states = std::vector<AxisState>(graph.mesh.axes.size(), kInvariant), .order = {}, .segments = {}};
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    const TensorType& type = spec.inputs[i];
    inputs.push_back(graph.add({.path = fmt::format("in{}", i),
                                .kind = type.dtype == DType::i32 ? ValueKind::feed : ValueKind::state,
                                .dtype = type.dtype,
                                .shape = type.shape,
                                .layout = whole}));
  }
  Op op = make_op(graph, spec.def, inputs, spec.attrs, "op");
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    Value& value = graph[op.outputs[i]];
    value.path = fmt::format("out{}", i);
    value.kind = ValueKind::fetch;
    value.layout = whole;
  }
  graph.ops.push_back(std::move(op));
  return graph;
}

void write_random(Bound& bound, const Value& value, int64_t integers_below) {
  Random random(5, value.path);
  auto count = static_cast<size_t>(value.local.count());
  auto write = [&]<class T>(T, const auto& element) {
    std::vector<T> data(count);
    for (size_t i = 0; i < count; ++i) data[i] = element(i);
    bound.write(value, std::as_bytes(std::span(data)));
  };
  auto real = [&](size_t i) { return static_cast<float>(0.25 + random.uniform(i)); };
  switch (value.dtype) {
    case DType::i32:
      return write(int32_t{}, [&](size_t i) {
        return static_cast<int32_t>(random.below(i, static_cast<uint64_t>(integers_below)));
      });
    case DType::f32:
      return write(float{}, real);
    case DType::f64:
      return write(double{}, [&](size_t i) { return static_cast<double>(real(i)); });
    case DType::bf16:
      return write(uint16_t{}, [&](size_t i) { return bf16_bits(real(i)); });
    default:
      BUG("no random {}", name_of(value.dtype));
  }
}

}  // namespace

OneOp::OneOp(Executor& executor, const OneOpSpec& spec) : program_(lower(graph_of(spec), executor.target(), {})) {
  arena_ = executor.allocate(program_.arena_bytes);
  bound_ = executor.bind(program_, *arena_);
  for (const Value& value : program_.values)
    if (value.buffer >= 0 && value.path.starts_with("in")) write_random(*bound_, value, spec.integers_below);
}

double OneOp::run() {
  Trace trace;
  for (const Action& action : program_.schedule) bound_->run(action, &trace);
  bound_->settle();
  double seconds = 0;
  for (const Event& event : trace) seconds += event.end_s - event.start_s;
  return seconds;
}

Cost OneOp::cost() const {
  Cost cost{};
  for (const Region& region : program_.regions)
    for (const Op& op : region.ops) cost += local_cost(program_, op);
  return cost;
}

}  // namespace sextant
