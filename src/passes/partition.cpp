#include "passes/partition.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "ir/alias.h"
#include "ops/ops.h"
#include "schedule/check.h"

namespace sextant {

namespace {

// Where an op runs: a region of a rank.
struct Place {
  int rank = 0;
  RegionKind kind = RegionKind::forward;
  int chunk = 0;
  auto operator<=>(const Place&) const = default;
};

class Partition {
 public:
  Partition(const Graph& graph, const PipelineSchedule& schedule, int rank)
      : graph_(graph), schedule_(schedule), rank_(rank), made_here_(graph.values.size(), false) {
    find_messages();
    find_versions();
    find_owners();
  }

  Program run() {
    program_ = {.name = graph_.name, .mesh = graph_.mesh, .stage_rank = rank_, .values = graph_.values};
    for (Value& value : program_.values) value.local = local_shape(value.shape, value.layout, program_.mesh);
    open_regions();
    for (const Op& op : graph_.ops)
      if (op.phase != Phase::update && place_of(op).rank == rank_) add(op);
    for (const Op& op : graph_.ops)
      if (op.phase == Phase::update && runs_here(op)) add_update(op);
    std::erase_if(program_.regions, [](const Region& region) { return region.ops.empty(); });
    set_schedule();
    return std::move(program_);
  }

 private:
  Place place_of(const Op& op) const {
    Place place{.rank = rank_of_stage(schedule_.shape, schedule_.placement, op.stage),
                .chunk = chunk_of_stage(schedule_.shape, op.stage)};
    if (op.phase == Phase::update) return {rank_, RegionKind::update, 0};
    if (op.phase != Phase::forward) place.kind = RegionKind::backward;
    if (op.phase == Phase::weight_gradient && schedule_.defers_weights()) place.kind = RegionKind::weight;
    return place;
  }

  // A value that is made on one rank and used on another, once for each of the others. Numbered alike on all ranks.
  struct Message {
    ValueId value;
    int from, to;
    int tag;
    Place arrives;  // the first region of the receiver that needs it
  };

  void find_messages() {
    std::map<ValueId, Place> made;
    std::map<std::pair<ValueId, int>, Place> needed;
    for (const Op& op : graph_.ops) {
      if (op.phase == Phase::update) continue;
      Place place = place_of(op);
      for (ValueId id : op.outputs) made[id] = place;
      for (ValueId id : op.inputs) {
        // The running sum of a gradient is not sent: every rank has its own, and sum_stages adds them up.
        auto at = made.find(id);
        if (at == made.end() || at->second.rank == place.rank || is_running_sum(op, id)) continue;
        auto [first, fresh] = needed.emplace(std::pair(id, place.rank), place);
        if (!fresh) first->second = std::min(first->second, place);
      }
    }
    int tag = 0;
    for (const auto& [key, place] : needed) messages_.push_back({key.first, made[key.first].rank, key.second, tag++, place});
  }

  static bool is_running_sum(const Op& op, ValueId id) {
    for (const Alias& alias : aliases_of(op))
      if (alias.rule == Alias::Rule::must && op.inputs[static_cast<size_t>(alias.input)] == id) return true;
    return false;
  }

  // Forward regions by ascending stage, backward ones by descending: values are then made before they are used.
  void open_regions() {
    for (RegionKind kind : {RegionKind::forward, RegionKind::backward, RegionKind::weight}) {
      for (int i = 0; i < schedule_.shape.chunks; ++i) {
        int chunk = kind == RegionKind::forward ? i : schedule_.shape.chunks - 1 - i;
        program_.regions.push_back({.kind = kind, .chunk = chunk});
      }
    }
    program_.regions.push_back({.kind = RegionKind::update});
    for (const Message& message : messages_)
      if (message.to == rank_) receive(message);
  }

  Region& region(const Place& place) {
    for (Region& region : program_.regions)
      if (region.kind == place.kind && region.chunk == place.chunk) return region;
    BUG("no region {} {}", name_of(place.kind), place.chunk);
  }

  void receive(const Message& message) {
    const Value& value = graph_[message.value];
    Op op{.def = &ops::recv, .outputs = {message.value}, .path = value.path + ".recv"};
    op.attrs = {{"peer", int64_t{message.from}},
                {"tag", int64_t{message.tag}},
                {"dims", fmt::format("{}", fmt::join(value.shape.dims(), ","))},
                {"dtype", std::string(name_of(value.dtype))}};
    op.phase = message.arrives.kind == RegionKind::forward ? Phase::forward : Phase::input_gradient;
    op.stage = stage_of(schedule_.shape, schedule_.placement, rank_, message.arrives.chunk);
    made_here_[static_cast<size_t>(message.value)] = true;
    region(message.arrives).ops.push_back(std::move(op));
  }

  void add(Op op) {
    Place place = place_of(op);
    for (ValueId& id : op.inputs) id = version_here(id);
    remember_versions(op);
    mark_start(op);
    std::vector<ValueId> outputs = op.outputs;
    int stage = op.stage;
    Phase phase = op.phase;
    region(place).ops.push_back(std::move(op));
    for (ValueId id : outputs) {
      for (const Message& message : messages_) {
        if (message.value != id || message.from != rank_) continue;
        Op send{.def = &ops::send, .inputs = {id}, .phase = phase, .stage = stage, .path = graph_[id].path + ".send"};
        send.attrs = {{"peer", int64_t{message.to}}, {"tag", int64_t{message.tag}}};
        region(place).ops.push_back(std::move(send));
      }
    }
  }

  // An accumulated gradient has a version per contribution; here only those of this rank's ops exist.
  ValueId version_here(ValueId id) const {
    while (!made_here_[static_cast<size_t>(id)]) {
      auto at = previous_version_.find(id);
      if (at == previous_version_.end()) break;
      id = at->second;
    }
    return id;
  }

  // The first op of this rank that adds onto a stored gradient begins its sum.
  void mark_start(Op& op) const {
    for (const Alias& alias : aliases_of(op))
      if (alias.rule == Alias::Rule::must && graph_[op.inputs[static_cast<size_t>(alias.input)]].kind == ValueKind::gradient)
        op.attrs.set("starts", int64_t{1});
  }

  void remember_versions(const Op& op) {
    for (ValueId id : op.outputs) made_here_[static_cast<size_t>(id)] = true;
  }

  void find_versions() {
    for (const Op& op : graph_.ops)
      for (const Alias& alias : aliases_of(op))
        if (alias.rule == Alias::Rule::must)
          previous_version_[op.outputs[static_cast<size_t>(alias.output)]] = op.inputs[static_cast<size_t>(alias.input)];
  }

  bool has_parameter(std::string_view path) const {
    auto at = owners_.find(path);
    return at != owners_.end() && at->second.contains(rank_);
  }

  bool available(ValueId id) const {
    const Value& value = graph_[id];
    if (value.kind == ValueKind::feed || value.kind == ValueKind::state) return true;
    if (value.kind == ValueKind::parameter) return has_parameter(value.path);
    if (value.kind == ValueKind::gradient) return has_parameter(value.path.substr(std::string_view("grad.").size()));
    return made_here_[static_cast<size_t>(id)];
  }

  // The update of a parameter runs where the parameter is used.
  bool runs_here(const Op& op) const {
    if (op.def == &ops::add_squares) return true;
    if (op.def == &ops::sum_squares && !counts_here(op)) return false;
    return std::all_of(op.inputs.begin(), op.inputs.end(), [&](ValueId id) { return available(version_here(id)); });
  }

  // A weight that several ranks hold counts once in the norm: on the first of them.
  bool counts_here(const Op& op) const {
    auto owners = owners_.find(op.path.substr(std::string_view("norm.").size()));
    return owners == owners_.end() || *owners->second.begin() == rank_;
  }

  void find_owners() {
    for (const Op& op : graph_.ops) {
      if (op.phase == Phase::update) continue;
      for (ValueId id : op.inputs)
        if (graph_[id].kind == ValueKind::parameter) owners_[graph_[id].path].insert(place_of(op).rank);
    }
  }

  void add_update(Op op) {
    for (ValueId& id : op.inputs) id = version_here(id);
    if (op.def == &ops::add_squares) std::erase_if(op.inputs, [&](ValueId id) { return !available(id); });
    remember_versions(op);
    region({rank_, RegionKind::update, 0}).ops.push_back(std::move(op));
  }

  void set_schedule() {
    program_.schedule = schedule_.ranks[static_cast<size_t>(rank_)];
    auto is_backward = [](const Action& action) { return action.region == RegionKind::backward; };
    bool trains = std::any_of(program_.schedule.begin(), program_.schedule.end(), is_backward);
    if (trains && schedule_.shape.ranks > 1) program_.gradient_slots = gradient_slots(schedule_);
    for (const Region& region : program_.regions)
      if (region.kind == RegionKind::update) program_.schedule.push_back({.region = RegionKind::update});
  }

  const Graph& graph_;
  const PipelineSchedule& schedule_;
  int rank_;
  Program program_;
  std::vector<Message> messages_;
  std::vector<bool> made_here_;
  std::map<ValueId, ValueId> previous_version_;
  std::map<std::string, std::set<int>, std::less<>> owners_;  // of parameters, by path: the ranks that use them
};

}  // namespace

Program partition(const Graph& graph, const PipelineSchedule& schedule, int rank) {
  return Partition(graph, schedule, rank).run();
}

}  // namespace sextant
