#include "passes/partition.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "ir/alias.h"
#include "ops/ops.h"
#include "passes/crossed_values.h"
#include "passes/deferred_ops.h"
#include "schedule/check.h"

namespace sextant {

namespace {

// Where an op runs: a region of a rank.
struct RegionPosition {
  int rank = 0;
  RegionKind kind = RegionKind::forward;
  int chunk = 0;
  auto operator<=>(const RegionPosition&) const = default;
};

// A value that is made on one rank and used on another, once for each of the others. Numbered alike on all ranks.
struct Crossing {
  ValueId sent, received;  // the same, but between copies of the pipeline (crossed_values.h)
  int from, to;
  int tag;
  RegionPosition arrives;  // the first region of the receiver that needs it
  bool to_copy() const { return sent != received; }
};

// Facts that hold for all ranks: the rank and region of each op, the messages, and the owners of each parameter.
class Cut {
 public:
  Cut(const CrossedGraph& crossed, const PipelineSchedule& schedule, DeferredGradients deferred)
      : crossed_(crossed),
        graph_(crossed.graph),
        schedule_(schedule),
        deferred_(schedule.defers_weights() ? deferred_ops(crossed.graph, deferred)
                                            : std::vector<bool>(crossed.graph.ops.size(), false)),
        ops_(static_cast<size_t>(schedule.shape.ranks)),
        previous_version_(graph_.values.size(), kNoValue),
        owners_(graph_.values.size()) {
    sort_ops();
    find_messages();
    find_versions();
    find_owners();
    auto is_backward = [](const Action& action) { return action.region == RegionKind::backward; };
    bool trains = std::any_of(schedule.ranks[0].begin(), schedule.ranks[0].end(), is_backward);
    if (trains && !messages_.empty()) gradient_slots_ = gradient_slots(schedule);
  }

  const Graph& graph() const { return graph_; }
  const PipelineSchedule& schedule() const { return schedule_; }
  int gradient_slots_needed() const { return gradient_slots_; }
  const std::vector<const Op*>& ops_of(int rank) const { return ops_[static_cast<size_t>(rank)]; }
  const std::vector<const Op*>& updates() const { return updates_; }
  const std::vector<Crossing>& messages() const { return messages_; }
  ValueId previous_version(ValueId id) const { return previous_version_[static_cast<size_t>(id)]; }

  // The ranks that use a parameter, or the parameter whose gradient this is; ascending.
  const std::vector<int>& owners(ValueId id) const { return owners_[static_cast<size_t>(id)]; }

  // Of an op of the graph.
  RegionPosition place_of(const Op& op) const {
    RegionPosition place{.rank = rank_of_stage(schedule_.shape, schedule_.placement, op.stage),
                         .chunk = chunk_of_stage(schedule_.shape, op.stage)};
    if (op.phase != Phase::forward) place.kind = RegionKind::backward;
    if (deferred_[static_cast<size_t>(&op - graph_.ops.data())]) place.kind = RegionKind::weight;
    return place;
  }

 private:
  void sort_ops() {
    for (const Op& op : graph_.ops)
      (op.phase == Phase::update ? updates_ : ops_[static_cast<size_t>(place_of(op).rank)]).push_back(&op);
  }

  void find_messages() {
    struct Made {
      bool known = false;
      RegionPosition place;
    };
    std::vector<Made> made(graph_.values.size());
    std::map<std::pair<ValueId, int>, RegionPosition> needed;
    for (const Op& op : graph_.ops) {
      if (op.phase == Phase::update) continue;
      RegionPosition place = place_of(op);
      for (ValueId id : op.outputs) made[static_cast<size_t>(id)] = {true, place};
      for (ValueId id : op.inputs) {
        // The running sum of a gradient is not sent: every rank has its own, and sum_stages adds them up.
        const Made& at = made[static_cast<size_t>(crossed_.sent_as(id))];
        bool here = at.place.rank == place.rank && crossed_.sent_as(id) == id;
        if (!at.known || here || is_running_sum(op, id)) continue;
        auto [first, fresh] = needed.emplace(std::pair(id, place.rank), place);
        if (!fresh) first->second = std::min(first->second, place);
      }
    }
    int tag = 0;
    for (const auto& [key, place] : needed) {
      ValueId sent = crossed_.sent_as(key.first);
      messages_.push_back({sent, key.first, made[static_cast<size_t>(sent)].place.rank, key.second, tag, place});
      tag += messages_.back().to_copy() ? 2 : 1;  // one for each direction (peer_of of ir/program.h)
    }
  }

  void find_versions() {
    for (const Op& op : graph_.ops)
      for (const Alias& alias : aliases_of(op))
        if (alias.rule == Alias::Rule::must)
          previous_version_[static_cast<size_t>(op.outputs[static_cast<size_t>(alias.output)])] =
              op.inputs[static_cast<size_t>(alias.input)];
  }

  void find_owners() {
    for (size_t rank = 0; rank < ops_.size(); ++rank) {
      for (const Op* op : ops_[rank]) {
        for (ValueId id : op->inputs) {
          std::vector<int>& owners = owners_[static_cast<size_t>(id)];
          if (graph_[id].kind != ValueKind::parameter) continue;
          if (owners.empty() || owners.back() != static_cast<int>(rank)) owners.push_back(static_cast<int>(rank));
        }
      }
    }
    for (const Value& value : graph_.values)
      if (is_step_sum(value.kind) && value.of != kNoValue) owners_[static_cast<size_t>(value.id)] = owners(value.of);
  }

  const CrossedGraph& crossed_;
  const Graph& graph_;
  const PipelineSchedule& schedule_;
  const std::vector<bool> deferred_;  // by op: whether it runs in W
  int gradient_slots_ = 1;
  std::vector<std::vector<const Op*>> ops_;  // of each rank, without the update
  std::vector<const Op*> updates_;
  std::vector<Crossing> messages_;
  std::vector<ValueId> previous_version_;
  std::vector<std::vector<int>> owners_;  // by value
};

class Partition {
 public:
  Partition(const Cut& cut, int rank)
      : cut_(cut), graph_(cut.graph()), rank_(rank), made_here_(graph_.values.size(), false) {
    for (const Crossing& message : cut.messages())
      if (message.from == rank) sent_.emplace(message.sent, &message);
  }

  Program run() {
    program_ = {
        .name = graph_.name, .mesh = graph_.mesh, .stage_rank = rank_, .gradient_slots = cut_.gradient_slots_needed()};
    open_regions();
    for (const Op* op : cut_.ops_of(rank_)) add(*op);
    for (const Op* op : cut_.updates())
      if (runs_here(*op)) add_update(*op);
    std::erase_if(program_.regions, [](const Region& region) { return region.ops.empty(); });
    set_schedule();
    take_values();
    return std::move(program_);
  }

 private:
  const PipelineShape& shape() const { return cut_.schedule().shape; }

  // Forward regions by ascending stage, backward ones by descending: values are then made before they are used.
  void open_regions() {
    for (RegionKind kind : {RegionKind::forward, RegionKind::backward, RegionKind::weight}) {
      for (int i = 0; i < shape().chunks; ++i) {
        int chunk = kind == RegionKind::forward ? i : shape().chunks - 1 - i;
        program_.regions.push_back({.kind = kind, .chunk = chunk, .ops = {}});
      }
    }
    program_.regions.push_back({.kind = RegionKind::update, .ops = {}});
    for (const Crossing& message : cut_.messages())
      if (message.to == rank_) receive(message);
  }

  Region& region(const RegionPosition& place) {
    for (Region& region : program_.regions)
      if (region.kind == place.kind && region.chunk == place.chunk) return region;
    BUG("no region {} {}", name_of(place.kind), place.chunk);
  }

  void receive(const Crossing& message) {
    const Value& value = graph_[message.received];
    Op op{.def = &ops::recv, .outputs = {message.received}, .path = value.path + ".recv"};
    op.attrs = {{"peer", int64_t{message.from}},
                {"tag", int64_t{message.tag}},
                {"dims", std::vector<int64_t>(value.shape.dims().begin(), value.shape.dims().end())},
                {"dtype", std::string(name_of(value.dtype))}};
    if (message.to_copy()) op.attrs.set("to_copy", int64_t{1});
    op.phase = message.arrives.kind == RegionKind::forward ? Phase::forward : Phase::input_gradient;
    op.stage = stage_of(shape(), cut_.schedule().placement, rank_, message.arrives.chunk);
    made_here_[static_cast<size_t>(message.received)] = true;
    region(message.arrives).ops.push_back(std::move(op));
  }

  void add(const Op& of_graph) {
    Region& into = region(cut_.place_of(of_graph));
    Op op = of_graph;
    for (ValueId& id : op.inputs) id = version_here(id);
    remember_versions(op);
    mark_start(op);
    into.ops.push_back(std::move(op));
    const Op added = into.ops.back();
    for (ValueId id : added.outputs) {
      auto [begin, end] = sent_.equal_range(id);
      for (auto at = begin; at != end; ++at) {
        Op send{.def = &ops::send,
                .inputs = {id},
                .phase = added.phase,
                .stage = added.stage,
                .path = graph_[id].path + ".send"};
        send.attrs = {{"peer", int64_t{at->second->to}}, {"tag", int64_t{at->second->tag}}};
        if (at->second->to_copy()) send.attrs.set("to_copy", int64_t{1});
        into.ops.push_back(std::move(send));
      }
    }
  }

  // An accumulated gradient has a version per contribution; here only those of this rank's ops exist.
  ValueId version_here(ValueId id) const {
    while (!made_here_[static_cast<size_t>(id)] && cut_.previous_version(id) != kNoValue)
      id = cut_.previous_version(id);
    return id;
  }

  // The first op of this rank that adds onto a stored gradient or tally begins its sum.
  void mark_start(Op& op) const {
    for (const Alias& alias : aliases_of(op))
      if (alias.rule == Alias::Rule::must && is_step_sum(graph_[op.inputs[static_cast<size_t>(alias.input)]].kind))
        op.attrs.set("starts", int64_t{1});
  }

  void remember_versions(const Op& op) {
    for (ValueId id : op.outputs) made_here_[static_cast<size_t>(id)] = true;
  }

  bool is_owner(ValueId id) const { return std::binary_search(cut_.owners(id).begin(), cut_.owners(id).end(), rank_); }

  bool available(ValueId id) const {
    switch (graph_[id].kind) {
      case ValueKind::feed:
      case ValueKind::cache:
        return true;
      case ValueKind::state:  // those of no weight are every rank's
        return graph_[id].of == kNoValue || is_owner(graph_[id].of);
      case ValueKind::low_bits:
        return is_owner(graph_[id].of);
      case ValueKind::parameter:
      case ValueKind::gradient:
      case ValueKind::tally:
        return is_owner(id);
      default:
        return made_here_[static_cast<size_t>(id)];
    }
  }

  // The update of a parameter runs where the parameter is used.
  bool runs_here(const Op& op) const {
    if (op.def->missing_inputs == MissingInputs::left_out)
      return std::any_of(op.inputs.begin(), op.inputs.end(), [&](ValueId id) { return available(version_here(id)); });
    if (op.def->held_by_several == HeldBySeveral::first_only && !is_first_owner(op.parameter)) return false;
    return std::all_of(op.inputs.begin(), op.inputs.end(), [&](ValueId id) { return available(version_here(id)); });
  }

  bool is_first_owner(ValueId parameter) const {
    return parameter == kNoValue || cut_.owners(parameter).empty() || cut_.owners(parameter).front() == rank_;
  }

  void add_update(Op op) {
    for (ValueId& id : op.inputs) id = version_here(id);
    if (op.def->missing_inputs == MissingInputs::left_out)
      std::erase_if(op.inputs, [&](ValueId id) { return !available(id); });
    remember_versions(op);
    region({rank_, RegionKind::update, 0}).ops.push_back(std::move(op));
  }

  void set_schedule() {
    program_.schedule = cut_.schedule().ranks[static_cast<size_t>(rank_)];
    for (const Region& region : program_.regions)
      if (region.kind == RegionKind::update) program_.schedule.push_back({.region = RegionKind::update});
  }

  // Those that its ops touch, with new numbers.
  void take_values() {
    std::vector<ValueId> number(graph_.values.size(), kNoValue);
    auto each_id = [&](auto visit) {
      for (Region& region : program_.regions)
        for (Op& op : region.ops)
          for (auto* ids : {&op.inputs, &op.outputs})
            for (ValueId& id : *ids) visit(id);
    };
    each_id([&](ValueId& id) { number[static_cast<size_t>(id)] = 0; });
    for (const Value& value : graph_.values) {
      ValueId& mine = number[static_cast<size_t>(value.id)];
      if (mine == kNoValue) continue;
      mine = static_cast<ValueId>(program_.values.size());
      Value& taken = program_.values.emplace_back(value);
      taken.id = mine;
      taken.local = local_shape(taken.shape, taken.layout, program_.mesh);
    }
    each_id([&](ValueId& id) { id = number[static_cast<size_t>(id)]; });
    auto renumber = [&](ValueId& id) {
      if (id != kNoValue) id = number[static_cast<size_t>(id)];
    };
    for (Value& value : program_.values) renumber(value.of);
    for (Region& region : program_.regions)
      for (Op& op : region.ops) renumber(op.parameter);
  }

  const Cut& cut_;
  const Graph& graph_;
  int rank_;
  Program program_;
  std::multimap<ValueId, const Crossing*> sent_;  // by the value
  std::vector<bool> made_here_;
};

}  // namespace

Program partition(const Graph& graph, const PipelineSchedule& schedule, int rank) {
  CrossedGraph crossed = crossed_values(graph, schedule);
  return Partition(Cut(crossed, schedule, DeferredGradients::all), rank).run();
}

std::vector<Program> partition_all(Graph graph, const PipelineSchedule& schedule, DeferredGradients deferred) {
  CrossedGraph crossed = crossed_values(std::move(graph), schedule);
  Cut cut(crossed, schedule, deferred);
  std::vector<Program> programs;
  for (int rank = 0; rank < schedule.shape.ranks; ++rank) programs.push_back(Partition(cut, rank).run());
  return programs;
}

}  // namespace sextant
