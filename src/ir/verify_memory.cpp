#include "ir/verify_memory.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/error.h"
#include "ir/alias.h"
#include "ir/lane.h"
#include "ir/walk.h"

namespace sextant {

namespace {

// Bytes [begin, end), counted so that no two arenas have one in common.
struct Range {
  int64_t begin = 0, end = 0;
  bool meets(const Range& other) const { return begin < other.end && other.begin < end; }
  bool empty() const { return begin >= end; }
};

using Content = int64_t;  // a number for what one run of one op has written; 0: nothing known

// What every byte of the arenas holds.
class Contents {
 public:
  void write(const Range& range, Content content) {
    if (range.empty()) return;
    cut(range.begin);
    cut(range.end);
    pieces_.erase(pieces_.lower_bound(range.begin), pieces_.lower_bound(range.end));
    pieces_[range.begin] = {range.end, content};
  }
  bool holds(const Range& range, Content content) const {
    if (range.empty()) return true;
    auto at = pieces_.upper_bound(range.begin);
    if (at == pieces_.begin()) return false;
    for (--at; at != pieces_.end() && at->first < range.end; ++at) {
      if (at->second.content != content) return false;
      if (at->second.end >= range.end) return true;
      if (std::next(at) == pieces_.end() || std::next(at)->first != at->second.end) return false;
    }
    return false;
  }

 private:
  struct Piece {
    int64_t end;
    Content content;
  };
  // No piece reaches over `at` afterwards.
  void cut(int64_t at) {
    auto next = pieces_.upper_bound(at);
    if (next == pieces_.begin()) return;
    auto piece = std::prev(next);
    if (piece->first == at || piece->second.end <= at) return;
    Piece rest = piece->second;
    piece->second.end = at;
    pieces_.emplace_hint(next, at, rest);
  }
  std::map<int64_t, Piece> pieces_;  // by first byte
};

// An access that has not been seen to end: of an op on the comm lane, or of a message under way.
struct Pending {
  int32_t op;
  int slot = -1;  // of a message
  Range range;
  bool writes = false;
};

class DryRun {
 public:
  DryRun(const Program& program, std::string_view after) : program_(program), after_(after), walk_(program) {
    made_.resize(program.values.size());
    find_stored();
    for (const Region& region : program.regions) first_microbatches_.push_back(first_microbatch(program, region));
    for (const Value& value : program.values) {
      made_[static_cast<size_t>(value.id)].resize(static_cast<size_t>(slots(value)));
      if (is_persistent(value.kind)) write(value, 0, kAnyMicrobatch);  // as the step before left it
    }
  }

  void run() {
    const std::vector<Action> actions = actions_to_run();
    for_each_unit(actions, [&](std::span<const Action> unit) {
      for (const WalkStep& step : walk_.steps(unit)) {
        action_ = &unit[static_cast<size_t>(step.part)];
        take(step);
      }
    });
    for (const Value& value : program_.values)
      if (value.kind == ValueKind::fetch && made_[static_cast<size_t>(value.id)][0].content != 0)
        BUG_IF(!contents_.holds(range(value, 0), made_[static_cast<size_t>(value.id)][0].content),
               "after {}: %{} ({}) is overwritten before the step ends and it is fetched", after_, value.id,
               value.path);
  }

 private:
  // Where every microbatch is finished before the next begins, and each runs the same regions, all of them are alike
  // but the first and the last. Of tens of thousands, those are enough in which every slot has been used twice, and the
  // last.
  std::vector<Action> actions_to_run() const {
    int slots = 1;
    for (const Buffer& buffer : program_.buffers) slots = std::max(slots, buffer.slots);
    const int kept = 2 * slots + 2;
    std::vector<std::vector<Action>> microbatches;
    std::vector<Action> update;
    for (const Action& action : program_.schedule) {
      if (action.region == RegionKind::update) {
        update.push_back(action);
        continue;
      }
      auto microbatch = static_cast<size_t>(action.microbatch);
      if (microbatch == microbatches.size()) microbatches.emplace_back();
      if (microbatch + 1 != microbatches.size() || !update.empty()) return program_.schedule;
      microbatches.back().push_back(action);
    }
    auto same_regions = [](const Action& a, const Action& b) { return a.region == b.region && a.chunk == b.chunk; };
    for (const std::vector<Action>& actions : microbatches)
      if (!std::ranges::equal(actions, microbatches.front(), same_regions)) return program_.schedule;
    std::vector<Action> taken;
    for (size_t i = 0; i < microbatches.size(); ++i)
      if (static_cast<int>(i) < kept || i + 1 == microbatches.size())
        taken.insert(taken.end(), microbatches[i].begin(), microbatches[i].end());
    taken.insert(taken.end(), update.begin(), update.end());
    return taken;
  }

  static constexpr int kAnyMicrobatch = -1;
  struct Made {
    Content content = 0;
    int microbatch = kAnyMicrobatch;
  };

  int slots(const Value& value) const {
    return value.buffer < 0 ? 1 : program_.buffers[static_cast<size_t>(value.buffer)].slots;
  }
  int slot(const Value& value, int microbatch) const { return std::max(0, microbatch) % slots(value); }
  Range range(const Value& value, int slot) const {
    if (value.buffer < 0) return {};
    const Buffer& buffer = program_.buffers[static_cast<size_t>(value.buffer)];
    int64_t begin = first_byte(buffer) + slot * buffer.bytes;
    return {begin, begin + value.local_bytes().n};
  }
  static int64_t first_byte(const Buffer& buffer) {
    constexpr int64_t kBytesOfArena = int64_t{1} << 60;
    return static_cast<int64_t>(buffer.space) * kBytesOfArena + buffer.offset;
  }
  // The versions of a value that is kept and changed in place (a sum of gradients, a weight, a cache) are one:
  // whichever an op names, it means what stands there now.
  void find_stored() {
    for (const Value& value : program_.values) stored_.push_back(value.id);
    for (const Region& region : program_.regions)
      for (const Op& op : region.ops)
        for (const Alias& alias : aliases_of(op)) {
          ValueId root = stored_[static_cast<size_t>(op.inputs[static_cast<size_t>(alias.input)])];
          if (alias.rule == Alias::Rule::must && is_persistent(program_[root].kind))
            stored_[static_cast<size_t>(op.outputs[static_cast<size_t>(alias.output)])] = root;
        }
  }

  Made& made(const Value& value, int microbatch) {
    ValueId id = stored_[static_cast<size_t>(value.id)];
    return made_[static_cast<size_t>(id)][static_cast<size_t>(slot(value, microbatch))];
  }
  void write(const Value& value, int microbatch, int as) {
    Made& m = made(value, microbatch);
    m = {++last_content_, as};
    contents_.write(range(value, slot(value, microbatch)), m.content);
  }

  void take(const WalkStep& step) {
    switch (step.kind) {
      case WalkStep::Kind::settle:
        std::erase_if(pending_, [](const Pending& p) { return p.slot >= 0; });
        return;
      case WalkStep::Kind::reclaim: {
        int slot = send_slot(walk_.op(step.op));
        std::erase_if(pending_, [&](const Pending& p) { return p.op == step.op && p.slot == slot; });
        return;
      }
      case WalkStep::Kind::wait:
        BUG_IF(step.op < 0 || static_cast<size_t>(step.op) >= walk_.op_count() || !on_comm_lane(walk_.op(step.op)),
               "after {}: op {} is waited for, which is not on the comm lane", after_, step.op);
        // The lane keeps its order: what started before it has ended too.
        if (auto at = started_.find(step.op); at != started_.end())
          std::erase_if(pending_, [&](const Pending& p) { return p.slot < 0 && started_.at(p.op) <= at->second; });
        return;
      case WalkStep::Kind::start:
        start(step.op);
        return;
    }
  }

  int send_slot(const Op& op) const { return slot(program_[op.inputs[0]], action_->microbatch); }

  void start(int32_t number) {
    const Op& op = walk_.op(number);
    if (on_comm_lane(op)) started_[number] = ++clock_;
    std::vector<bool> overwritten = overwritten_inputs(op);
    for (size_t i = 0; i < op.inputs.size(); ++i)
      if (!overwritten[i]) read(number, program_[op.inputs[i]]);
    int32_t workspace = program_.workspaces.empty() ? -1 : program_.workspaces[static_cast<size_t>(number)];
    if (workspace >= 0) {
      const Buffer& scratch = program_.buffers[static_cast<size_t>(workspace)];
      const Range bytes{first_byte(scratch), first_byte(scratch) + scratch.bytes};
      touch(number, bytes, Access::write);
      contents_.write(bytes, 0);
    }
    std::vector<Alias> aliases = aliases_of(op);
    for (size_t o = 0; o < op.outputs.size(); ++o) {
      const Value& value = program_[op.outputs[o]];
      auto view = std::find_if(aliases.begin(), aliases.end(), [&](const Alias& a) {
        return a.rule == Alias::Rule::view && a.output == static_cast<int>(o);
      });
      if (view != aliases.end()) {  // the same bytes under another name
        made(value, action_->microbatch) = {
            made(program_[op.inputs[static_cast<size_t>(view->input)]], action_->microbatch).content,
            action_->microbatch};
        continue;
      }
      touch(number, range(value, slot(value, action_->microbatch)), Access::write);
      write(value, action_->microbatch, action_->microbatch);
    }
    check_outputs(op);
  }

  // Outputs of one op that lie in each other's way.
  void check_outputs(const Op& op) {
    for (ValueId id : op.outputs) {
      const Value& value = program_[id];
      BUG_IF(!contents_.holds(range(value, slot(value, action_->microbatch)), made(value, action_->microbatch).content),
             "after {}: outputs of {} overlap: %{} ({})", after_, op.path, id, value.path);
    }
  }

  // Inputs of which only the bytes are wanted: the op writes its result over them.
  std::vector<bool> overwritten_inputs(const Op& op) const {
    std::vector<bool> over(op.inputs.size(), false);
    bool fresh = starts_sum(op) && first_microbatches_[*walk_.region_of(*action_)] == action_->microbatch;
    if (!op.inputs.empty() && (writes_into(op) || (accumulates(op) && fresh))) over.back() = true;
    if (fresh && !accumulates(op))
      for (const Alias& alias : aliases_of(op))
        if (alias.rule == Alias::Rule::must) over[static_cast<size_t>(alias.input)] = true;
    return over;
  }

  void read(int32_t number, const Value& value) {
    const Op& op = walk_.op(number);
    if (value.kind == ValueKind::feed && made(value, action_->microbatch).microbatch != action_->microbatch)
      feed(value);
    const Made& m = made(value, action_->microbatch);
    BUG_IF(m.content == 0, "after {}: {} reads %{} ({}) before it is made", after_, op.path, value.id, value.path);
    bool of_microbatch = value.kind == ValueKind::activation && action_->region != RegionKind::update &&
                         m.microbatch != kAnyMicrobatch && origin_is_activation(value);
    BUG_IF(of_microbatch && m.microbatch != action_->microbatch,
           "after {}: {} reads %{} ({}) of microbatch {} for microbatch {}", after_, op.path, value.id, value.path,
           m.microbatch, action_->microbatch);
    BUG_IF(!contents_.holds(range(value, slot(value, action_->microbatch)), m.content),
           "after {}: {} reads %{} ({}), whose bytes were overwritten or freed", after_, op.path, value.id, value.path);
    touch(number, range(value, slot(value, action_->microbatch)), Access::read);
    if (op.def->holds_inputs)
      pending_.push_back({number, slot(value, action_->microbatch), range(value, slot(value, action_->microbatch))});
  }

  // Versions of a sum over microbatches are activations that live in a gradient's buffer.
  bool origin_is_activation(const Value& value) const {
    BufferClass kind =
        value.buffer < 0 ? BufferClass::activations : program_.buffers[static_cast<size_t>(value.buffer)].kind;
    return kind == BufferClass::activations || kind == BufferClass::saved;
  }

  // The host writes a feed before the first action that reads it.
  void feed(const Value& value) {
    touch(-1, range(value, slot(value, action_->microbatch)), Access::write);
    write(value, action_->microbatch, action_->microbatch);
  }

  enum class Access : uint8_t { read, write };

  void touch(int32_t number, const Range& bytes, Access access) {
    if (bytes.empty()) return;
    bool comm = number >= 0 && on_comm_lane(walk_.op(number));
    for (const Pending& p : pending_) {
      if (!p.range.meets(bytes) || (access == Access::read && !p.writes)) continue;
      if (comm && p.slot < 0) continue;  // the lane keeps its order
      BUG("after {}: {} {} bytes that {} still {}: a wait is missing", after_,
          number < 0 ? std::string("a feed") : walk_.op(number).path, access == Access::read ? "reads" : "writes",
          walk_.op(p.op).path, p.writes ? "writes" : "reads");
    }
    if (comm) pending_.push_back({number, -1, bytes, access == Access::write});
  }

  const Program& program_;
  std::string_view after_;
  Walk walk_;
  Contents contents_;
  std::vector<std::vector<Made>> made_;  // by value and slot
  std::vector<ValueId> stored_;          // by value: the first of its versions
  std::vector<int> first_microbatches_;  // by region
  std::vector<Pending> pending_;
  std::map<int32_t, int64_t> started_;  // ops of the comm lane, in the order of their latest runs
  const Action* action_ = nullptr;
  Content last_content_ = 0;
  int64_t clock_ = 0;
};

}  // namespace

void verify_memory(const Program& program, std::string_view after) {
  DryRun(program, after).run();
}

}  // namespace sextant
