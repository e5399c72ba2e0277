#include "passes/memory.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "ir/alias.h"
#include "ir/lane.h"
#include "ir/lifetime.h"
#include "passes/occupancy.h"

namespace sextant {

namespace {

int op_count(const Program& program) {
  size_t ops = 0;
  for (const Region& region : program.regions) ops += region.ops.size();
  return static_cast<int>(ops);
}

// The time that memory is planned over: the ops of all regions in order, and behind them the steps of each kind of
// pair, in which two regions run at once. What shares bytes must not meet in any of them.
class PlannedTime {
 public:
  explicit PlannedTime(const Program& program)
      : live_(lifetimes(program)), pairs_(pair_lifetimes(program)), length_(op_count(program)) {
    for (const PairLifetimes& pair : pairs_) {
      begins_.push_back(length_);
      length_ += pair.steps;
    }
  }

  int length() const { return length_; }
  size_t pairs() const { return pairs_.size(); }
  const Lifetime& in_order(ValueId id) const { return live_[static_cast<size_t>(id)]; }
  // In the pair's place of the time; unused where the value is not alive there.
  Lifetime in_pair(size_t pair, ValueId id) const { return placed(pair, pairs_[pair].values[static_cast<size_t>(id)]); }
  // From the start of op `first` to that of op `last`, by number.
  std::vector<Lifetime> from_to(int first, int last) const {
    std::vector<Lifetime> all{{first, last}};
    for (size_t pair = 0; pair < pairs_.size(); ++pair)
      all.push_back(placed(
          pair, {pairs_[pair].started[static_cast<size_t>(first)], pairs_[pair].started[static_cast<size_t>(last)]}));
    return all;
  }

 private:
  Lifetime placed(size_t pair, Lifetime life) const {
    return life.used() ? Lifetime{life.first + begins_[pair], life.last + begins_[pair]} : life;
  }

  std::vector<Lifetime> live_;
  std::vector<PairLifetimes> pairs_;
  std::vector<int> begins_;  // by pair
  int length_;
};

// Values that share one buffer, as a union-find over value ids, with the joint lifetimes at the root.
class Groups {
 public:
  Groups(const Program& program, const PlannedTime& time) : program_(program) {
    for (const Value& value : program.values) {
      std::vector<Lifetime>& lives = live_.emplace_back();
      lives.push_back(time.in_order(value.id));
      for (size_t pair = 0; pair < time.pairs(); ++pair) lives.push_back(time.in_pair(pair, value.id));
    }
    parent_.resize(live_.size());
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  ValueId root(ValueId id) const {
    while (parent_[static_cast<size_t>(id)] != id) id = parent_[static_cast<size_t>(id)];
    return id;
  }
  const Lifetime& life(ValueId id) const { return lives(id).front(); }  // in the order of the regions
  const std::vector<Lifetime>& lives(ValueId id) const { return live_[static_cast<size_t>(root(id))]; }

  void join(ValueId input, ValueId output) {
    ValueId a = root(input), b = root(output);
    if (a == b) return;
    std::vector<Lifetime>& mine = live_[static_cast<size_t>(a)];
    const std::vector<Lifetime>& more = live_[static_cast<size_t>(b)];
    for (size_t i = 0; i < mine.size(); ++i) {
      if (!more[i].used() && i > 0) continue;
      if (!mine[i].used() && i > 0) {
        mine[i] = more[i];
        continue;
      }
      mine[i].first = std::min(mine[i].first, more[i].first);
      mine[i].last = std::max(mine[i].last, more[i].last);
    }
    parent_[static_cast<size_t>(b)] = a;
  }

  // An op may overwrite an input that ends here, is not wanted from outside, and has the output's size.
  bool may_overwrite(ValueId input, ValueId output, int op) const {
    const Value &in = program_[input], &out = program_[output];
    bool movable = program_[root(input)].kind == ValueKind::activation && in.kind == ValueKind::activation &&
                   in.space == out.space;
    return movable && life(input).last == op && in.local_bytes() == out.local_bytes() && life(output).first == op;
  }

 private:
  const Program& program_;
  std::vector<std::vector<Lifetime>> live_;
  std::vector<ValueId> parent_;
};

Groups share_buffers(const Program& program, const PlannedTime& time) {
  Groups groups(program, time);
  for (Alias::Rule rule : {Alias::Rule::must, Alias::Rule::view, Alias::Rule::may}) {
    int at = 0;
    for (const Region& region : program.regions) {
      for (const Op& op : region.ops) {
        std::vector<bool> taken(op.outputs.size(), false);
        for (const Alias& alias : aliases_of(op)) {
          ValueId in = op.inputs[static_cast<size_t>(alias.input)], out = op.outputs[static_cast<size_t>(alias.output)];
          if (alias.rule != rule || taken[static_cast<size_t>(alias.output)]) continue;
          if (rule == Alias::Rule::may && !groups.may_overwrite(in, out, at)) continue;
          groups.join(in, out);
          taken[static_cast<size_t>(alias.output)] = true;
        }
        ++at;
      }
    }
  }
  return groups;
}

BufferClass class_of(const Program& program, const Value& value, size_t regions) {
  switch (value.kind) {
    case ValueKind::parameter:
      return BufferClass::weights;
    case ValueKind::gradient:
    case ValueKind::tally:
      return has_several_microbatches(program) ? BufferClass::gradients : BufferClass::activations;
    case ValueKind::state:
    case ValueKind::low_bits:
      return BufferClass::optimizer;
    case ValueKind::quantized:
      if (has_several_microbatches(program)) return BufferClass::weights;
      break;
    case ValueKind::cache:
      return BufferClass::cache;
    case ValueKind::feed:
    case ValueKind::fetch:
      return BufferClass::feeds;
    case ValueKind::activation:
      break;
  }
  return regions > 1 ? BufferClass::saved : BufferClass::activations;
}

bool persistent_class(BufferClass kind) {
  return kind <= BufferClass::cache;
}

// The arena of one space while it is filled.
struct ArenaSize {
  Program& program;
  MemorySpace space;

  int64_t& persistent() const {
    return space == MemorySpace::device ? program.persistent_bytes : elsewhere().persistent;
  }
  int64_t& all() const { return space == MemorySpace::device ? program.arena_bytes : elsewhere().all; }

 private:
  ArenaExtent& elsewhere() const { return space == MemorySpace::host ? program.host_arena : program.nvme_arena; }
};

// The alignment of buffers in each space, in bytes.
class Alignments {
 public:
  Alignments(const Program& program, const Target& target)
      : target_(target.alignment),
        has_file_(std::ranges::count(program.values, MemorySpace::nvme, &Value::space) > 0) {}

  int64_t in(MemorySpace space) const {
    return has_file_ && space != MemorySpace::device ? std::max(target_, kFileBlock) : target_;
  }

 private:
  int64_t target_;
  bool has_file_;
};

struct Placed {
  int32_t buffer;
  std::vector<Lifetime> lives;
};

// Largest first, each at the lowest offset where nothing that lives at the same time is in the way.
class TransientPlacer {
 public:
  TransientPlacer(Program& program, ArenaSize arena, int length, int64_t base)
      : program_(program), arena_(arena), taken_(length), base_(base) {}

  void place(std::vector<Placed> items) {
    auto bytes = [&](const Placed& p) { return program_.buffers[static_cast<size_t>(p.buffer)].total_bytes(); };
    std::stable_sort(items.begin(), items.end(), [&](const Placed& a, const Placed& b) { return bytes(a) > bytes(b); });
    for (const Placed& item : items) {
      Buffer& buffer = program_.buffers[static_cast<size_t>(item.buffer)];
      buffer.offset = lowest_gap(item.lives, buffer.total_bytes());
      int64_t end = buffer.offset + buffer.total_bytes();
      arena_.all() = std::max(arena_.all(), end);
      for (const Lifetime& life : item.lives)
        if (life.used()) taken_.take(life, {buffer.offset, end});
    }
  }

 private:
  // Every lifetime in turn moves the place up, until a round moves it no more.
  int64_t lowest_gap(const std::vector<Lifetime>& lives, int64_t bytes) const {
    int64_t from = base_, before;
    do {
      before = from;
      for (const Lifetime& life : lives)
        if (life.used()) from = taken_.lowest_gap(life, from, bytes);
    } while (lives.size() > 1 && from != before);
    return from;
  }

  Program& program_;
  ArenaSize arena_;
  Occupancy taken_;
  int64_t base_;
};

LocalTypes local_types(const Program& program, const std::vector<ValueId>& ids) {
  LocalTypes types;
  for (ValueId id : ids) types.push_back({program[id].dtype, program[id].local});
  return types;
}

// For each root the regions that touch any value of its group, and whether one of them is sent.
struct GroupUse {
  std::vector<int> regions;
  bool sent_backward = false;
  bool made_once = false;  // for one microbatch only
};

std::vector<GroupUse> uses_of(const Program& program, const Groups& groups) {
  std::vector<GroupUse> uses(program.values.size());
  std::vector<std::vector<int>> touching = regions_touching(program);
  for (const Value& value : program.values) {
    std::vector<int>& regions = uses[static_cast<size_t>(groups.root(value.id))].regions;
    std::vector<int> both;
    const std::vector<int>& more = touching[static_cast<size_t>(value.id)];
    std::set_union(regions.begin(), regions.end(), more.begin(), more.end(), std::back_inserter(both));
    regions = std::move(both);
  }
  for (const Region& region : program.regions) {
    for (const Op& op : region.ops) {
      if (op.def->holds_inputs && region.kind == RegionKind::backward)
        for (ValueId id : op.inputs) uses[static_cast<size_t>(groups.root(id))].sent_backward = true;
      if (once_per_step(op))
        for (ValueId id : op.outputs) uses[static_cast<size_t>(groups.root(id))].made_once = true;
    }
  }
  return uses;
}

// How many microbatches need a copy of the values of a group. Many groups are touched by the same regions.
class SlotCount {
 public:
  explicit SlotCount(const Program& program) : program_(program) {}

  int operator()(const Value& value, const GroupUse& use) {
    if (is_persistent(value.kind) || use.made_once) return 1;
    int slots = use.sent_backward ? program_.gradient_slots : 1;
    if (use.regions.size() < 2) return slots;
    auto [at, fresh] = known_.emplace(use.regions, 0);
    if (fresh) at->second = microbatches_in_flight(program_, use.regions);
    return std::max(slots, at->second);
  }

 private:
  const Program& program_;
  std::map<std::vector<int>, int> known_;
};

// One buffer per group of values that share bytes.
std::vector<Placed> make_value_buffers(Program& program, const Groups& groups, const Alignments& alignments) {
  std::vector<Placed> items;
  std::vector<GroupUse> uses = uses_of(program, groups);
  SlotCount slots(program);
  std::vector<int32_t> buffer_of_root(program.values.size(), -1);
  for (Value& value : program.values) {
    ValueId root = groups.root(value.id);
    if (!groups.life(value.id).used()) continue;
    int32_t& buffer = buffer_of_root[static_cast<size_t>(root)];
    int64_t bytes = round_up(value.local_bytes().n, alignments.in(value.space));
    if (buffer < 0) {
      buffer = static_cast<int32_t>(program.buffers.size());
      const GroupUse& use = uses[static_cast<size_t>(root)];
      program.buffers.push_back({.kind = class_of(program, program[root], use.regions.size()),
                                 .space = value.space,
                                 .bytes = bytes,
                                 .slots = slots(program[root], use)});
      items.push_back({buffer, groups.lives(root)});
    }
    value.buffer = buffer;
    BUG_IF(program.buffers[static_cast<size_t>(buffer)].space != value.space,
           "{} shares bytes with a value of another space", value.path);
    BUG_IF(program.buffers[static_cast<size_t>(buffer)].bytes != bytes, "{} shares bytes with a value of another size",
           value.path);
  }
  return items;
}

// From the first to the last of the ops that are done together with op `at` of the region, as indices in it.
std::pair<size_t, size_t> done_together(const Region& region, size_t at, const Target& target) {
  size_t first = at, last = at;
  const OpDef* def = region.ops[at].def;
  if (!target.done_together(*def)) return {at, at};
  while (first > 0 && region.ops[first - 1].def == def) --first;
  while (last + 1 < region.ops.size() && region.ops[last + 1].def == def) ++last;
  return {first, last};
}

void add_workspaces(Program& program, const Target& target, const Alignments& alignments, const PlannedTime& time,
                    std::vector<Placed>& items) {
  int start = 0;  // of the region, in ops counted over all
  // Ops on the comm lane run one after the other, at times the compute lane does not know: they share one scratch, for
  // good.
  int32_t comm_scratch = -1;
  for (const Region& region : program.regions) {
    for (size_t i = 0; i < region.ops.size(); ++i) {
      const Op& op = region.ops[i];
      const MemorySpace space = space_of(program, op);
      const auto& needs = space == MemorySpace::host ? target.host_workspace : target.workspace;
      int64_t need = needs(op, local_types(program, op.inputs), local_types(program, op.outputs)).n;
      int32_t buffer = -1;
      if (need > 0 && on_comm_lane(op) && comm_scratch >= 0) {
        buffer = comm_scratch;
      } else if (need > 0) {
        buffer = static_cast<int32_t>(program.buffers.size());
        program.buffers.push_back({.kind = BufferClass::workspace, .space = space});
        if (on_comm_lane(op)) comm_scratch = buffer;
        auto [first, last] = done_together(region, i, target);
        if (!on_comm_lane(op))
          items.push_back({buffer, time.from_to(start + static_cast<int>(first), start + static_cast<int>(last))});
      }
      if (buffer >= 0) {
        int64_t& bytes = program.buffers[static_cast<size_t>(buffer)].bytes;
        bytes = std::max(bytes, round_up(need, alignments.in(space)));
      }
      program.workspaces.push_back(buffer);
    }
    start += static_cast<int>(region.ops.size());
  }
  if (comm_scratch >= 0) items.push_back({comm_scratch, {{0, std::max(0, time.length() - 1)}}});
}

void place_persistent(Program& program) {
  for (BufferClass kind : {BufferClass::weights, BufferClass::gradients, BufferClass::optimizer, BufferClass::cache}) {
    for (Buffer& buffer : program.buffers) {
      if (buffer.kind != kind) continue;
      int64_t& end = ArenaSize{program, buffer.space}.persistent();
      buffer.offset = end;
      end += buffer.bytes;
    }
  }
}

// Buffers that are kept from step to step get the offsets that they have in the other Program.
void place_persistent_beside(Program& program, const Program& other) {
  std::unordered_map<std::string_view, int64_t> offsets;
  for (const Value& value : other.values)
    if (value.buffer >= 0 && persistent_class(other.buffers[static_cast<size_t>(value.buffer)].kind))
      offsets.emplace(value.path, other.buffers[static_cast<size_t>(value.buffer)].offset);
  std::vector<bool> placed(program.buffers.size());
  for (const Value& value : program.values) {
    if (value.buffer < 0) continue;
    auto index = static_cast<size_t>(value.buffer);
    Buffer& buffer = program.buffers[index];
    auto at = offsets.find(value.path);
    if (!persistent_class(buffer.kind) || at == offsets.end()) continue;
    BUG_IF(placed[index] && buffer.offset != at->second, "{} has two places in the arena that {} shares", value.path,
           program.name);
    placed[index] = true;
    buffer.offset = at->second;
    int64_t& end = ArenaSize{program, buffer.space}.persistent();
    end = std::max(end, buffer.offset + buffer.bytes);
  }
  // Sums of a step that only this Program makes lie behind all that the other keeps: they are read before it runs
  // again.
  int64_t end = std::max(program.persistent_bytes, other.persistent_bytes);
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    Buffer& buffer = program.buffers[i];
    if (!persistent_class(buffer.kind) || placed[i]) continue;
    BUG_IF(buffer.kind != BufferClass::gradients || buffer.space != MemorySpace::device,
           "{} keeps {}, which the Program does not whose arena it shares", program.name,
           std::ranges::find(program.values, static_cast<int32_t>(i), &Value::buffer)->path);
    buffer.offset = end;
    end = program.persistent_bytes = end + buffer.bytes;
  }
}

}  // namespace

void plan_memory(Program& program, const Target& target, const Program* beside) {
  PlannedTime time(program);
  Alignments alignments(program, target);
  std::vector<Placed> items = make_value_buffers(program, share_buffers(program, time), alignments);
  add_workspaces(program, target, alignments, time, items);
  beside ? place_persistent_beside(program, *beside) : place_persistent(program);
  std::erase_if(items,
                [&](const Placed& p) { return persistent_class(program.buffers[static_cast<size_t>(p.buffer)].kind); });
  for (MemorySpace space : kSpaces) {
    ArenaSize arena{program, space};
    arena.all() = arena.persistent();
    int64_t kept = std::max(beside ? beside->arena(space).persistent : 0, arena.persistent());
    std::vector<Placed> here;
    for (const Placed& item : items)
      if (program.buffers[static_cast<size_t>(item.buffer)].space == space) here.push_back(item);
    if (!here.empty()) TransientPlacer(program, arena, time.length(), kept).place(std::move(here));
  }
}

MemoryUse memory_use(const Program& program) {
  MemoryUse use;
  for (const Buffer& buffer : program.buffers) {
    if (buffer.space != MemorySpace::device) continue;
    if (buffer.kind == BufferClass::weights) use.weights += Bytes{buffer.total_bytes()};
    if (buffer.kind == BufferClass::gradients) use.gradients += Bytes{buffer.bytes};
    if (buffer.kind == BufferClass::optimizer) use.optimizer += Bytes{buffer.bytes};
    if (buffer.kind == BufferClass::cache) use.cache += Bytes{buffer.bytes};
    if (buffer.kind == BufferClass::saved) use.saved += Bytes{buffer.total_bytes()};
  }
  use.total = {program.arena_bytes};
  Bytes named = use.weights + use.gradients + use.optimizer + use.cache + use.saved;
  use.working = {use.total.n - named.n};
  return use;
}

}  // namespace sextant
