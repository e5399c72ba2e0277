#include "ops/op_on_mesh.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "base/error.h"
#include "base/fp8.h"
#include "base/rng.h"
#include "comm/run_ranks.h"
#include "exec/cpu/cpu_executor.h"
#include "ir/verify.h"
#include "mesh/placement.h"
#include "passes/autodiff.h"
#include "passes/localize.h"
#include "passes/memory.h"
#include "passes/partition.h"
#include "passes/prune.h"
#include "targets/cpu/cpu_target.h"

namespace sextant {

namespace {

using Numbers = std::vector<double>;

constexpr double kTolerance = 1e-10;
constexpr uint64_t kSeed = 11;

// Beside the axis that a row is about there is one of a single rank: ops that name a ring find it alone.
constexpr int kAxis = 1;
Mesh mesh_of(int ranks) {
  return {{{"cp", 1}, {"tp", ranks}}};
}

AxisState state_of(const Value& value) {
  return value.layout.at(kAxis);
}

// The op with its inputs as parameters (integers as feeds), every operand in the row's state.
struct OpGraph {
  Graph graph;
  ValueId output = kNoValue;
  std::vector<std::string> given, wanted;  // paths of what is written before the run, and read after it

  explicit OpGraph(const RowCase& c) {
    graph = {.name = std::string(c.def.name), .mesh = mesh_of(c.ranks), .values = {}, .ops = {}};
    Signature signature = parse_signature(c.def.operands);
    auto layout = [&](AxisState state, const Operand& operand, const TensorType& type) {
      return Layout{.states = {kInvariant, c.ranks == 1 ? kInvariant : state},
                    .order = {},
                    .segments = packed_segments(operand, type, c.example.attrs)};
    };
    std::vector<const Operand*> operands = signature.operands_of(ranks_of(c.example.inputs));
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < c.example.inputs.size(); ++i) {
      const TensorType& type = c.example.inputs[i];
      given.push_back(fmt::format("in{}", i));
      inputs.push_back(graph.add({.path = given.back(),
                                  .kind = type.dtype == DType::f64 ? ValueKind::parameter : ValueKind::feed,
                                  .dtype = type.dtype,
                                  .shape = type.shape,
                                  .layout = layout(c.row.inputs[i], *operands[i], type)}));
    }
    Op op = make_op(graph, c.def, inputs, c.example.attrs, "op");
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      Value& value = graph[op.outputs[i]];
      value.path = fmt::format("out{}", i);
      value.kind = ValueKind::fetch;
      value.layout = layout(c.row.outputs[i], signature.outputs[i], type_of(value));
      wanted.push_back(value.path);
    }
    output = op.outputs[0];
    graph.ops.push_back(std::move(op));
  }

  void differentiate() {
    const Value& y = graph[output];
    ValueId seed = graph.add({.path = "seed",
                              .kind = ValueKind::feed,
                              .dtype = y.dtype,
                              .shape = y.shape,
                              .layout = gradient_layout(y.layout)});
    given.push_back("seed");
    autodiff(graph, {{{output, seed}}});
    prune(graph);
    for (const auto& [parameter, gradient] : parameter_gradients(graph))
      wanted.push_back("grad." + graph[parameter].path);
  }
};

// Positive, since some ops take roots: of second moments, of sums of squares. Integers are 1 at least, since steps
// count from 1.
Numbers draw(const Value& value, const Example& example) {
  Random random(kSeed, value.path);
  Numbers x(static_cast<size_t>(value.shape.count()));
  for (size_t i = 0; i < x.size(); ++i)
    if (value.dtype == DType::f64 || is_fp8(value.dtype))
      x[i] = 0.25 + random.uniform(i);
    else if (example.distinct)
      x[i] = static_cast<double>(example.distinct_integer(static_cast<int64_t>(i), value.shape.last()));
    else
      x[i] = static_cast<double>(1 + random.below(i, static_cast<uint64_t>(example.integers_below - 1)));
  return x;
}

// visit(local, global) for every element that the rank at a coordinate holds.
template <class Visit>
void for_each_held(const Value& value, const Mesh& mesh, const Coordinate& at, const Visit& visit) {
  std::vector<std::pair<int64_t, int64_t>> elements{{0, 0}};
  for (int dim = 0; dim < value.shape.rank(); ++dim) {
    std::vector<std::pair<int64_t, int64_t>> longer;
    for (const auto& [local, global] : elements)
      for (const Span& span : held(value.shape[dim], value.layout, dim, mesh, at))
        for (int64_t i = 0; i < span.count; ++i)
          longer.emplace_back(local * value.local[dim] + span.local + i, global * value.shape[dim] + span.global_at(i));
    elements = std::move(longer);
  }
  for (const auto& [local, global] : elements) visit(static_cast<size_t>(local), static_cast<size_t>(global));
}

// One of the terms that add up to a partial value: random on all ranks but the last, which has the rest.
Numbers term(const Numbers& sum, std::string_view path, int rank, int ranks) {
  auto random_term = [&](int r, size_t i) { return Random(kSeed, path, static_cast<uint64_t>(r) + 1).normal(i); };
  Numbers x = sum;
  for (size_t i = 0; i < x.size(); ++i) {
    if (rank < ranks - 1)
      x[i] = random_term(rank, i);
    else
      for (int r = 0; r < ranks - 1; ++r) x[i] -= random_term(r, i);
  }
  return x;
}

void write_part(Bound& bound, const Value& value, const Numbers& whole) {
  const Mesh& mesh = bound.program().mesh;
  Numbers source = state_of(value) == kPartial ? term(whole, value.path, bound.rank(), mesh.world_size()) : whole;
  Numbers part(static_cast<size_t>(value.local.count()), 0);
  for_each_held(value, mesh, coordinate_of(mesh, bound.rank()),
                [&](size_t local, size_t global) { part[local] = source[global]; });
  if (value.dtype == DType::f64) return bound.write(value, std::as_bytes(std::span(part)));
  if (is_fp8(value.dtype)) {
    std::vector<uint8_t> codes;
    for (double x : part) codes.push_back(fp8_bits(fp8_format(value.dtype), static_cast<float>(x)));
    return bound.write(value, std::as_bytes(std::span(codes)));
  }
  if (value.dtype == DType::u8) {
    std::vector<uint8_t> codes(part.begin(), part.end());
    return bound.write(value, std::as_bytes(std::span(codes)));
  }
  if (value.dtype == DType::i64) {
    std::vector<int64_t> integers(part.begin(), part.end());
    return bound.write(value, std::as_bytes(std::span(integers)));
  }
  std::vector<int32_t> integers(part.begin(), part.end());
  bound.write(value, std::as_bytes(std::span(integers)));
}

Numbers read_part(const Bound& bound, const Value& value) {
  auto count = static_cast<size_t>(value.local.count());
  Numbers part(count);
  if (value.dtype == DType::i32) {
    std::vector<int32_t> integers(count);
    bound.read(value, std::as_writable_bytes(std::span(integers)));
    std::copy(integers.begin(), integers.end(), part.begin());
  } else if (value.dtype == DType::u8) {
    std::vector<uint8_t> codes(count);
    bound.read(value, std::as_writable_bytes(std::span(codes)));
    std::copy(codes.begin(), codes.end(), part.begin());
  } else if (is_fp8(value.dtype)) {
    std::vector<uint8_t> codes(count);
    bound.read(value, std::as_writable_bytes(std::span(codes)));
    for (size_t i = 0; i < count; ++i) part[i] = fp8_value(fp8_format(value.dtype), codes[i]);
  } else if (value.dtype == DType::f32) {
    std::vector<float> reals(count);
    bound.read(value, std::as_writable_bytes(std::span(reals)));
    std::copy(reals.begin(), reals.end(), part.begin());
  } else {
    bound.read(value, std::as_writable_bytes(std::span(part)));
  }
  return part;
}

using Parts = std::vector<std::map<std::string, Numbers>>;  // by rank and path

Parts run_all_ranks(const Program& program, const OpGraph& op, const Example& example) {
  int ranks = program.mesh.world_size();
  Parts parts(static_cast<size_t>(ranks));
  ThreadHub hub(ranks, std::chrono::seconds(20));
  std::vector<RankEnd> ends = run_ranks(hub, ranks, [&](Transport& transport) {
    int rank = transport.rank();
    auto executor = make_cpu_executor(1, {rank, ranks == 1 ? nullptr : &transport});
    auto arena = executor->allocate(program.arena_bytes);
    auto bound = executor->bind(program, *arena);
    for (const std::string& path : op.given)
      if (const Value& value = program.at(path); value.buffer >= 0) write_part(*bound, value, draw(value, example));
    run_schedule(*bound);
    for (const std::string& path : op.wanted)
      parts[static_cast<size_t>(rank)][path] = read_part(*bound, program.at(path));
  });
  for (const RankEnd& end : ends)
    if (!end.error.empty() && !end.is_echo) throw std::runtime_error(end.error);
  return parts;
}

// By the meaning of the value's state. Appends a complaint where the ranks contradict each other.
Numbers whole_of(const Value& value, const Mesh& mesh, const Parts& parts, std::vector<std::string>& complaints) {
  Numbers whole(static_cast<size_t>(value.shape.count()), 0);
  std::vector<int> holders(whole.size(), 0);
  StateKind kind = state_of(value).kind;
  bool copies = kind == StateKind::replicated || kind == StateKind::invariant, same = true;
  for (int rank = 0; rank < mesh.world_size(); ++rank) {
    const Numbers& part = parts[static_cast<size_t>(rank)].at(value.path);
    for_each_held(value, mesh, coordinate_of(mesh, rank), [&](size_t local, size_t global) {
      if (copies && rank > 0)
        same = same && whole[global] == part[local];
      else if (kind == StateKind::partial_max)
        whole[global] = std::max(whole[global], part[local]);  // of magnitudes
      else
        whole[global] += part[local];
      ++holders[global];
    });
  }
  if (!same)
    complaints.push_back(fmt::format("{} is {} but differs between ranks", value.path, state_of(value).text()));
  int expected = kind == StateKind::sharded && mesh.world_size() > 1 ? 1 : mesh.world_size();
  for (int count : holders)
    if (count != expected) {
      complaints.push_back(fmt::format("{}: an element is held {} times, not {}", value.path, count, expected));
      break;
    }
  return whole;
}

double relative_error(const Numbers& a, const Numbers& b) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  return size == 0 ? std::sqrt(difference) : std::sqrt(difference / size);
}

}  // namespace

std::string row_text(const LayoutRow& row) {
  std::string text;
  for (const AxisState& state : row.inputs) text += state.text() + " ";
  text += "->";
  for (const AxisState& state : row.outputs) text += " " + state.text();
  return text;
}

std::string RowCase::text() const {
  return fmt::format("{} / {} on {} ranks: {}", def.name, example.name, ranks, row_text(row));
}

Segments packed_segments(const Operand& operand, const TensorType& type, const Attrs& attrs) {
  if (size_t dim = operand.letters.find('e'); dim != std::string::npos && attrs.has("kv_heads")) {
    int64_t kv = attrs.integer_or("copies", attrs.integer("kv_heads")), keys = attrs.integer("head_dim");
    int64_t values = attrs.integer_or("value_dim", keys);
    return {static_cast<int>(dim), {attrs.integer("heads") * keys, kv * keys, kv * values}};
  }
  // The rows of a weight of experts are those of one expert after the other.
  if ((operand.letters == "gi" || operand.letters == "g") && attrs.has("experts")) {
    int64_t experts = attrs.integer("experts");
    return {0, std::vector<int64_t>(static_cast<size_t>(experts), type.shape[0] / experts)};
  }
  // A last dim g is gate|up.
  size_t dim = operand.letters.rfind('g');
  if (dim == std::string::npos || dim + 1 != operand.letters.size()) return {};
  int64_t half = type.shape[static_cast<int>(dim)] / 2;
  return {static_cast<int>(dim), {half, half}};
}

WholeResults run_on_mesh(const RowCase& c, Direction direction) {
  OpGraph op(c);
  if (direction == Direction::backward) op.differentiate();
  localize(op.graph);
  verify(op.graph, Stage::built, "localize");
  Program program = partition(op.graph, make_schedule("1f1b", {}), 0);
  plan_memory(program, cpu_target(1));
  verify(program, Stage::planned, "memory");
  Parts parts = run_all_ranks(program, op, c.example);
  WholeResults results;
  for (const std::string& path : op.wanted)
    results.tensors[path] = whole_of(program.at(path), program.mesh, parts, results.complaints);
  return results;
}

std::vector<std::string> differences(const RowCase& c) {
  std::vector<std::string> found;
  for (Direction direction : {Direction::forward, Direction::backward}) {
    if (direction == Direction::backward && !c.def.backward) continue;
    WholeResults expected = run_on_mesh({c.def, c.example, c.row, 1}, direction), got = run_on_mesh(c, direction);
    for (const std::string& complaint : got.complaints) found.push_back(fmt::format("{}: {}", c.text(), complaint));
    for (const auto& [path, numbers] : expected.tensors) {
      double error = relative_error(got.tensors.at(path), numbers);
      if (!(error <= kTolerance)) found.push_back(fmt::format("{}: {} is off by {:.1e}", c.text(), path, error));
    }
  }
  return found;
}

}  // namespace sextant
