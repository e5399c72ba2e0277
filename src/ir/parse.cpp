#include "ir/parse.h"

#include <charconv>
#include <limits>
#include <utility>

#include "base/error.h"
#include "ir/names.h"

namespace sextant {

namespace {

// One line, read from the left. Every failure names the line and what was expected there.
class Line {
 public:
  Line(std::string_view text, int number) : rest_(text), number_(number) {}

  [[noreturn]] void fail(std::string_view expected) const {
    throw UserError({.place = fmt::format("line {}", number_),
                     .got = rest_.empty() ? "the line ends too early" : fmt::format("'{}'", rest_.substr(0, 40)),
                     .expected = std::string(expected)});
  }

  bool accept(std::string_view token) {
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail(fmt::format("'{}'", token));
  }
  // Up to the next character of `stops` (not consumed), which may be the end of the line.
  std::string_view until(std::string_view stops) {
    std::string_view word = rest_.substr(0, rest_.find_first_of(stops));
    rest_.remove_prefix(word.size());
    return word;
  }
  std::string_view word() {
    std::string_view w = until(" ");
    if (w.empty()) fail("a word");
    accept(" ");
    return w;
  }
  int64_t integer() {
    int64_t n = 0;
    auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), n);
    if (error != std::errc{}) fail("an integer");
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return n;
  }
  int32_t index() {
    int64_t n = integer();
    if (n < -1 || n > std::numeric_limits<int32_t>::max()) fail("an index");
    return static_cast<int32_t>(n);
  }
  double real() {
    double x = 0;
    auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), x);
    if (error != std::errc{}) fail("a number");
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return x;
  }
  std::vector<int64_t> dims() {
    std::vector<int64_t> out;
    expect("[");
    while (!accept("]")) {
      if (!out.empty()) expect(", ");
      out.push_back(integer());
    }
    return out;
  }
  template <class Table>
  auto named(const Table& table, std::string_view what) {
    std::string_view w = until(" ");
    auto found = find_name(table, w);
    if (!found) {
      rest_ = w;
      fail(what);
    }
    accept(" ");
    return *found;
  }
  std::string_view rest() const { return rest_; }
  bool done() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  int number_;
};

class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {}
  bool more() const { return !text_.empty(); }
  bool next_starts(std::string_view token) const { return text_.starts_with(token); }
  Line next() {
    std::string_view line = text_.substr(0, text_.find('\n'));
    text_.remove_prefix(std::min(text_.size(), line.size() + 1));
    return Line(line, ++number_);
  }

 private:
  std::string_view text_;
  int number_ = 0;
};

Mesh parse_mesh(Line line, const AxisLookup& axes) {
  line.expect("mesh ");
  Mesh mesh;
  while (!line.done()) {
    std::string_view name = line.until("=");
    const AxisDef* axis = axes(name);
    if (!axis) line.fail(fmt::format("a known axis instead of '{}'", name));
    line.expect("=");
    int32_t size = line.index();
    if (size < 1) line.fail("an axis size of at least 1");
    mesh.axes.push_back({*axis, size});
    line.accept(" ");
  }
  return mesh;
}

Init parse_init(Line& line) {
  if (line.accept("zeros ")) return {};
  if (line.accept("ones ")) return {.kind = Init::Kind::ones};
  line.expect("normal(");
  Init init{.kind = Init::Kind::normal, .std = line.real()};
  line.expect(") ");
  return init;
}

// Where none are named, those of the mesh.
std::vector<int> parse_data_axes(Line& line, const Mesh& mesh) {
  if (!line.accept(" data <")) return mesh.data_axes();
  std::vector<int> axes;
  while (!line.accept(">")) {
    std::optional<int> axis = mesh.find(line.until(" >"));
    if (!axis) line.fail("an axis of the mesh or '>'");
    axes.push_back(*axis);
    line.accept(" ");
  }
  return axes;
}

Measured parse_measured(Line& line) {
  Measured measured{.layer = line.index()};
  line.expect(" ");
  measured.tensor = line.named(kMeasuredTensorNames, "a tensor that is measured");
  auto numbers = find_name(kMeasuredNumbersNames, line.until(" "));
  if (!numbers) line.fail("sums or largest");
  measured.numbers = *numbers;
  return measured;
}

Value parse_value(Line line, const Mesh& mesh) {
  Value value;
  line.expect("value %");
  value.id = line.index();
  line.expect(" ");
  value.kind = line.named(kValueKindNames, "a value kind");
  value.of = line.index();
  line.expect(" ");
  auto dtype = dtype_from_name(line.until("["));
  if (!dtype) line.fail("a dtype");
  value.dtype = *dtype;
  value.shape = GlobalShape(line.dims());
  line.expect(" ");
  // The layout runs up to the init word, which no layout entry looks like.
  std::string_view rest = line.rest();
  size_t end = std::min({rest.find(" zeros "), rest.find(" ones "), rest.find(" normal(")});
  if (end == std::string_view::npos) line.fail("a layout and an init");
  value.layout = parse_layout(rest.substr(0, end), mesh);
  line.expect(rest.substr(0, end + 1));
  value.init = parse_init(line);
  value.path = line.until(" ");
  if (line.accept(" in ")) {
    value.stored.path = line.until("+");
    line.expect("+");
    value.stored.first_row = line.integer();
    line.expect("+");
    value.stored.first_packed = line.integer();
  }
  if (line.accept(" packs ")) {
    do value.packed_rows.push_back(line.integer());
    while (line.accept("|"));
  }
  if (line.accept(" balance ")) value.balance_speed = line.real();
  for (const auto& [counted, name] : kTallyNames)
    if (counted != TallyOf::load && line.accept(" " + std::string(name))) value.counted = counted;
  if (line.accept(" measures ")) value.measured = parse_measured(line);
  if (line.accept(" space ")) value.space = line.named(kSpaceNames, "a space");
  if (value.kind == ValueKind::parameter) value.data_axes = parse_data_axes(line, mesh);
  return value;
}

std::vector<ValueId> parse_ids(Line& line, std::string_view separator) {
  std::vector<ValueId> ids;
  while (line.accept("%")) {
    ids.push_back(line.index());
    if (!line.accept(separator)) break;
  }
  return ids;
}

Attrs parse_attrs(Line& line) {
  Attrs attrs;
  line.expect("{");
  while (!line.accept("}")) {
    std::string name(line.until("="));
    line.expect("=");
    if (line.accept("\"")) {
      attrs.set(name, std::string(line.until("\"")));
      line.expect("\"");
    } else if (line.accept("[")) {
      std::vector<int64_t> list;
      while (!line.accept("]")) {
        list.push_back(line.integer());
        line.accept(" ");
      }
      attrs.set(name, std::move(list));
    } else if (line.accept("(")) {
      std::vector<double> list;
      while (!line.accept(")")) {
        list.push_back(line.real());
        line.accept(" ");
      }
      attrs.set(name, std::move(list));
    } else if (line.accept("<")) {
      std::vector<std::string> list;
      while (!line.accept(">")) {
        std::string_view word = line.until(" >");
        if (word.empty()) line.fail("a name or '>'");
        list.emplace_back(word);
        line.accept(" ");
      }
      attrs.set(name, std::move(list));
    } else {
      std::string_view number = line.rest().substr(0, line.rest().find_first_of(",}"));
      if (number.find_first_of(".en") == std::string_view::npos)
        attrs.set(name, line.integer());
      else
        attrs.set(name, line.real());
    }
    line.accept(", ");
  }
  return attrs;
}

Op parse_op(Line line, const OpLookup& ops, size_t value_count) {
  Op op;
  line.expect("op ");
  op.outputs = parse_ids(line, " ");
  line.accept(" ");
  line.expect("= ");
  std::string_view name = line.until("(");
  op.def = ops(name);
  if (!op.def) line.fail(fmt::format("a known op instead of '{}'", name));
  line.expect("(");
  op.inputs = parse_ids(line, ", ");
  line.expect(") ");
  op.attrs = parse_attrs(line);
  line.expect(" ");
  op.phase = line.named(kPhaseNames, "a phase");
  op.stage = line.index();
  line.expect(" ");
  op.block = line.index();
  line.expect(" ");
  op.lane = line.named(kLaneNames, "a lane");
  op.runs_for = line.named(kRunsForNames, "every, first or last");
  op.parameter = line.index();
  line.expect(" ");
  op.path = line.rest();
  for (const auto* ids : {&op.inputs, &op.outputs})
    for (ValueId id : *ids)
      if (id < 0 || static_cast<size_t>(id) >= value_count) line.fail(fmt::format("a known value instead of %{}", id));
  return op;
}

void parse_waits(Lines& lines, Op& op) {
  if (!lines.next_starts("  waits ")) return;
  Line line = lines.next();
  line.expect("  waits");
  while (line.accept(" ")) op.waits.push_back(line.index());
}

void parse_values(Lines& lines, const Mesh& mesh, std::vector<Value>& values) {
  while (lines.next_starts("value ")) {
    Line line = lines.next();
    Value value = parse_value(line, mesh);
    if (value.id != static_cast<ValueId>(values.size())) line.fail(fmt::format("value %{}", values.size()));
    if (lines.next_starts("  local ")) {
      Line local = lines.next();
      local.expect(fmt::format("  local %{} ", value.id));
      value.local = LocalShape(local.dims());
      local.expect(" ");
      value.buffer = local.index();
    }
    values.push_back(std::move(value));
  }
}

}  // namespace

Graph parse_graph(std::string_view text, const OpLookup& ops, const AxisLookup& axes) {
  Lines lines(text);
  Graph graph;
  Line head = lines.next();
  head.expect("graph ");
  graph.name = head.rest();
  graph.mesh = parse_mesh(lines.next(), axes);
  parse_values(lines, graph.mesh, graph.values);
  while (lines.more()) {
    graph.ops.push_back(parse_op(lines.next(), ops, graph.values.size()));
    parse_waits(lines, graph.ops.back());
  }
  return graph;
}

Program parse_program(std::string_view text, const OpLookup& ops, const AxisLookup& axes) {
  Lines lines(text);
  Program program;
  Line head = lines.next();
  head.expect("program ");
  program.stage_rank = head.index();
  head.expect(" ");
  program.gradient_slots = head.index();
  head.expect(" ");
  program.name = head.rest();
  program.mesh = parse_mesh(lines.next(), axes);
  Line arena = lines.next();
  arena.expect("arena ");
  program.persistent_bytes = arena.integer();
  arena.expect(" ");
  program.arena_bytes = arena.integer();
  for (auto [space, extent] :
       {std::pair(MemorySpace::host, &program.host_arena), std::pair(MemorySpace::nvme, &program.nvme_arena)}) {
    std::string start = fmt::format("arena_of {} ", name_of(space));
    if (!lines.next_starts(start)) continue;
    Line line = lines.next();
    line.expect(start);
    extent->persistent = line.integer();
    line.expect(" ");
    extent->all = line.integer();
  }
  while (lines.next_starts("buffer ")) {
    Line line = lines.next();
    line.expect(fmt::format("buffer {} ", program.buffers.size()));
    Buffer buffer{.kind = line.named(kBufferNames, "a buffer class"), .offset = line.integer()};
    line.expect(" ");
    buffer.bytes = line.integer();
    line.expect(" ");
    buffer.slots = line.index();
    if (line.accept(" ")) buffer.space = line.named(kSpaceNames, "a space");
    program.buffers.push_back(buffer);
  }
  parse_values(lines, program.mesh, program.values);
  while (lines.next_starts("region ")) {
    Line line = lines.next();
    line.expect("region ");
    Region region{.kind = line.named(kRegionNames, "a region kind"), .chunk = line.index()};
    while (lines.next_starts("op ")) {
      region.ops.push_back(parse_op(lines.next(), ops, program.values.size()));
      parse_waits(lines, region.ops.back());
      program.workspaces.push_back(-1);
      if (lines.next_starts("  workspace ")) {
        Line workspace = lines.next();
        workspace.expect("  workspace ");
        program.workspaces.back() = workspace.index();
      }
    }
    program.regions.push_back(std::move(region));
  }
  while (lines.more()) {
    Line line = lines.next();
    line.expect("action ");
    Action action{.region = line.named(kRegionNames, "a region kind"), .chunk = line.index()};
    line.expect(" ");
    action.microbatch = line.index();
    action.with_next = line.accept(" with_next");
    program.schedule.push_back(action);
  }
  return program;
}

}  // namespace sextant
