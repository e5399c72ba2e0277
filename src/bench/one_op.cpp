#include "bench/one_op.h"

#include <algorithm>

#include "base/bf16.h"
#include "base/error.h"
#include "base/f16.h"
#include "base/fp8.h"
#include "base/rng.h"
#include "models/model.h"
#include "passes/lower.h"

namespace sextant {

namespace {

std::string one_op_input(size_t i) {
  return fmt::format("in{}", i);
}

std::string one_op_output(size_t i) {
  return fmt::format("out{}", i);
}

Graph graph_of(const OneOpSpec& spec) {
  Graph graph{.name = std::string(spec.def.name), .mesh = single_rank_mesh(), .values = {}, .ops = {}};
  Layout whole{.states = std::vector<AxisState>(graph.mesh.axes.size(), kInvariant), .order = {}, .segments = {}};
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    const TensorType& type = spec.inputs[i];
    inputs.push_back(
        graph.add({.path = one_op_input(i),
                   .kind = type.dtype == DType::i32 || type.dtype == DType::i64 ? ValueKind::feed : ValueKind::state,
                   .dtype = type.dtype,
                   .shape = type.shape,
                   .layout = whole}));
  }
  Op op = make_op(graph, spec.def, inputs, spec.attrs, "op");
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    Value& value = graph[op.outputs[i]];
    value.path = one_op_output(i);
    value.kind = ValueKind::fetch;
    value.layout = whole;
  }
  graph.ops.push_back(std::move(op));
  return graph;
}

// One block of random elements over and over: to draw gigabytes of them on the host would take longer than all that is
// timed. Its length is prime, so that the rows of a matrix do not repeat each other.
constexpr size_t kBlock = 1'048'573;

// Of all draws, between 0.25 and 1.25.
float drawn_real(const Random& random, size_t i) {
  return static_cast<float>(0.25 + random.uniform(i));
}

Random random_of(const Value& value) {
  return Random(5, value.path);
}

template <class T, class Element>
void write_blocks(Bound& bound, const Value& value, const Element& element) {
  auto count = static_cast<size_t>(value.local.count());
  std::vector<T> block(std::min(count, kBlock));
  for (size_t i = 0; i < block.size(); ++i) block[i] = element(i);
  for (size_t at = 0; at < count; at += block.size())
    bound.write(value, std::as_bytes(std::span(block).first(std::min(block.size(), count - at))),
                static_cast<int64_t>(at * sizeof(T)));
}

void write_random(Bound& bound, const Value& value, int64_t integers_below) {
  Random random = random_of(value);
  auto real = [&](size_t i) { return drawn_real(random, i); };
  switch (value.dtype) {
    case DType::i32:
      return write_blocks<int32_t>(bound, value, [&](size_t i) {
        return static_cast<int32_t>(random.below(i, static_cast<uint64_t>(integers_below)));
      });
    case DType::i64:
      return write_blocks<int64_t>(bound, value, [&](size_t i) {
        return static_cast<int64_t>(random.below(i, static_cast<uint64_t>(integers_below)));
      });
    case DType::f32:
      return write_blocks<float>(bound, value, real);
    case DType::f64:
      return write_blocks<double>(bound, value, [&](size_t i) { return static_cast<double>(real(i)); });
    case DType::bf16:
      return write_blocks<uint16_t>(bound, value, [&](size_t i) { return bf16_bits(real(i)); });
    case DType::f16:
      return write_blocks<uint16_t>(bound, value, [&](size_t i) { return f16_bits(real(i)); });
    case DType::u8:
      return write_blocks<uint8_t>(bound, value, [&](size_t i) { return static_cast<uint8_t>(random.below(i, 256)); });
    case DType::e4m3:
    case DType::e5m2:
      return write_blocks<uint8_t>(bound, value, [&](size_t i) { return fp8_bits(fp8_format(value.dtype), real(i)); });
    default:
      BUG("no random {}", name_of(value.dtype));
  }
}

}  // namespace

OneOp::OneOp(Executor& executor, const OneOpSpec& spec) : program_(lower(graph_of(spec), executor.target(), {})) {
  arena_ = executor.allocate(program_.arena_bytes);
  bound_ = executor.bind(program_, *arena_);
  for (const Value& value : program_.values)
    if (value.buffer >= 0 && (value.kind == ValueKind::feed || value.kind == ValueKind::state))
      write_random(*bound_, value, spec.integers_below);
  for (const auto& [input, integers] : spec.integers)
    bound_->write(value(one_op_input(input)), std::as_bytes(std::span(integers)));
}

const Value& OneOp::value(const std::string& path) const {
  const Value* found = program_.find(path);
  BUG_IF(!found || found->buffer < 0, "{} has no {}", program_.name, path);
  return *found;
}

double OneOp::drawn(size_t input, int64_t at) const {
  const Value& drawn = value(one_op_input(input));
  float element = drawn_real(random_of(drawn), static_cast<size_t>(at) % kBlock);
  if (drawn.dtype == DType::f16) element = f16_value(f16_bits(element));
  return static_cast<double>(drawn.dtype == DType::bf16 ? bf16_value(bf16_bits(element)) : element);
}

double OneOp::result(int64_t at) const {
  const Value& output = value(one_op_output(0));
  if (output.dtype == DType::f32) {
    float element = 0;
    bound_->read(output, std::as_writable_bytes(std::span(&element, 1)), at * int64_t{sizeof element});
    return static_cast<double>(element);
  }
  BUG_IF(output.dtype != DType::bf16 && output.dtype != DType::f16, "results of {} are not looked at",
         name_of(output.dtype));
  uint16_t bits = 0;
  bound_->read(output, std::as_writable_bytes(std::span(&bits, 1)), at * int64_t{sizeof bits});
  return static_cast<double>(output.dtype == DType::f16 ? f16_value(bits) : bf16_value(bits));
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
