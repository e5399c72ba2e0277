#include "ir/verify_memory.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "ir/alias.h"
#include "ir/arena_contents.h"
#include "ir/host_access.h"
#include "ir/lane.h"
#include "ir/walk.h"

namespace sextant {

namespace {

// An access that has not been seen to end: of an op on the comm lane, or of a message under way.
struct Pending {
  int32_t op;
  int slot = -1;  // of a message
  SegmentRun run;
  bool writes = false;
};

// Facts about an op that the dry run reads each time the op starts. Facts of one kind are contiguous: a schedule starts
// ops millions of times, and the dry run would otherwise wait for the memory over which Op and Value are spread.
struct InputFacts {
  ValueId value;
  // Only its bytes are wanted, the op writes over them: always, or for the first microbatch of a step.
  bool is_over = false, is_over_when_fresh = false;
};
struct OutputFacts {
  ValueId value;
  ValueId view_of = -1;  // the input whose bytes it names; -1: it has its own
};
struct OpFacts {
  size_t first_input = 0, input_count = 0, first_output = 0, output_count = 0;
  bool on_comm_lane = false, holds_inputs = false, starts_sum = false;
  SegmentRun workspace;
};

class DryRun {
 public:
  DryRun(const Program& program, std::string_view after)
      : program_(program),
        after_(after),
        walk_(program),
        contents_(all_ranges(program), runs_),
        feeds_(microbatch_feeds(program)),
        fetches_(fetches(program)) {
    find_stored();
    for (const Region& region : program.regions) first_microbatches_.push_back(first_microbatch(program, region));
    size_t next = 0;
    for (const Value& value : program.values) {
      ValueFacts& facts = values_.emplace_back();
      facts = {.value = &value,
               .kind = value.kind,
               .slots = slots(program, value),
               .first_run = next,
               .is_of_microbatch = value.kind == ValueKind::activation && origin_is_activation(value)};
      if (value.kind == ValueKind::feed) facts.is_of_microbatch = !is_of_step(value);
      next += static_cast<size_t>(facts.slots);
    }
    made_.resize(next);
    for (ValueFacts& facts : values_)
      facts.first_made = values_[static_cast<size_t>(stored_[static_cast<size_t>(facts.value->id)])].first_run;
    for (size_t number = 0; number < walk_.op_count(); ++number)
      add_op(walk_.op(static_cast<int32_t>(number)), workspace_of(program, number) < 0 ? SegmentRun{} : runs_[next++]);
    started_.resize(ops_.size(), 0);
    for (const ValueFacts& facts : values_) {
      const bool fed = facts.kind == ValueKind::feed && is_of_step(*facts.value);
      if (is_persistent(facts.kind) || fed)
        write(facts, 0, kAnyMicrobatch);  // as the step before, or the host, left it
    }
  }

  void run() {
    const std::vector<Action> actions = actions_to_run();
    for_each_unit(actions, [&](std::span<const Action> unit) {
      for_each_access(feeds_, unit, [&](const ValueFacts& value, int microbatch) { write_as_host(value, microbatch); });
      for (const WalkStep& step : walk_.steps(unit)) {
        action_ = &unit[static_cast<size_t>(step.part)];
        take(step);
      }
      for_each_access(fetches_, unit, [&](const ValueFacts& value, int microbatch) {
        require_fetched(value, "the host reads it");
        BUG_IF(made(value, 0).microbatch != microbatch, "after {}: the host reads %{} ({}) of microbatch {} for {}",
               after_, value.value->id, value.value->path, made(value, 0).microbatch, microbatch);
        touch(kHost, run_of(value, 0), Access::read);
      });
    });
    for (const HostAccess& fetched : fetches_)
      if (const ValueFacts& value = value_facts(fetched.value); made(value, 0).content != 0)
        require_fetched(value, "the step ends");
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

  // visit(value, microbatch): what the host touches along with the actions of a unit.
  template <class Visit>
  void for_each_access(const std::vector<HostAccess>& accesses, std::span<const Action> unit, const Visit& visit) {
    for (const Action& action : unit)
      for (const HostAccess& access : accesses)
        if (access.is_at(action)) visit(value_facts(access.value), action.microbatch);
  }

  static constexpr int kAnyMicrobatch = -1;
  struct Made {
    ArenaContents::Content content = 0;
    int microbatch = kAnyMicrobatch;
  };

  struct ValueFacts {
    const Value* value = nullptr;
    ValueKind kind = ValueKind::activation;
    int slots = 1;
    size_t first_run = 0;           // in runs_: its bytes in slot 0; those in the others follow
    size_t first_made = 0;          // in made_: of the first of its versions
    bool is_of_microbatch = false;  // whether what it holds is one microbatch's
  };

  static int slots(const Program& program, const Value& value) {
    return value.buffer < 0 ? 1 : program.buffers[static_cast<size_t>(value.buffer)].slots;
  }
  static int32_t workspace_of(const Program& program, size_t number) {
    return program.workspaces.empty() ? -1 : program.workspaces[number];
  }
  // Those of every value in each of its slots, then those of the workspaces, by op.
  static std::vector<ByteRange> all_ranges(const Program& program) {
    std::vector<ByteRange> ranges;
    for (const Value& value : program.values)
      for (int slot = 0; slot < slots(program, value); ++slot) {
        if (value.buffer < 0) {
          ranges.emplace_back();
          continue;
        }
        const Buffer& buffer = program.buffers[static_cast<size_t>(value.buffer)];
        int64_t begin = first_byte(buffer) + slot * buffer.bytes;
        ranges.push_back({begin, begin + value.local_bytes().n});
      }
    for (int32_t workspace : program.workspaces) {
      if (workspace < 0) continue;
      const Buffer& scratch = program.buffers[static_cast<size_t>(workspace)];
      ranges.push_back({first_byte(scratch), first_byte(scratch) + scratch.bytes});
    }
    return ranges;
  }
  static int64_t first_byte(const Buffer& buffer) {
    constexpr int64_t kBytesOfArena = int64_t{1} << 60;
    return static_cast<int64_t>(buffer.space) * kBytesOfArena + buffer.offset;
  }
  void add_op(const Op& op, const SegmentRun& workspace) {
    ops_.push_back({.first_input = inputs_.size(),
                    .input_count = op.inputs.size(),
                    .first_output = outputs_.size(),
                    .output_count = op.outputs.size(),
                    .on_comm_lane = on_comm_lane(op),
                    .holds_inputs = op.def->holds_inputs,
                    .starts_sum = starts_sum(op),
                    .workspace = workspace});
    for (ValueId id : op.inputs) inputs_.push_back({id});
    for (ValueId id : op.outputs) outputs_.push_back({id});
    if (!op.inputs.empty()) {
      inputs_.back().is_over = writes_into(op);
      inputs_.back().is_over_when_fresh = writes_into(op) || accumulates(op);
    }
    for (const Alias& alias : aliases_of(op)) {
      InputFacts& input = inputs_[ops_.back().first_input + static_cast<size_t>(alias.input)];
      OutputFacts& output = outputs_[ops_.back().first_output + static_cast<size_t>(alias.output)];
      if (alias.rule == Alias::Rule::must && !accumulates(op)) input.is_over_when_fresh = true;
      if (alias.rule == Alias::Rule::view && output.view_of < 0) output.view_of = input.value;
    }
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

  const ValueFacts& value_facts(ValueId id) const { return values_[static_cast<size_t>(id)]; }
  static size_t slot(const ValueFacts& value, int microbatch) {
    return static_cast<size_t>(std::max(0, microbatch) % value.slots);
  }
  const SegmentRun& run_of(const ValueFacts& value, int microbatch) const {
    return runs_[value.first_run + slot(value, microbatch)];
  }
  Made& made(const ValueFacts& value, int microbatch) { return made_[value.first_made + slot(value, microbatch)]; }
  void write(const ValueFacts& value, int microbatch, int as) {
    Made& m = made(value, microbatch);
    m = {++last_content_, as};
    contents_.write(run_of(value, microbatch), m.content);
  }

  // Executors read a fetch where microbatch 0 has it.
  void require_fetched(const ValueFacts& facts, std::string_view until) {
    BUG_IF(facts.slots != 1, "after {}: %{} ({}) is fetched, and {} microbatches have their own", after_,
           facts.value->id, facts.value->path, facts.slots);
    BUG_IF(!contents_.holds(run_of(facts, 0), made(facts, 0).content), "after {}: %{} ({}) is overwritten before {}",
           after_, facts.value->id, facts.value->path, until);
  }

  void take(const WalkStep& step) {
    switch (step.kind) {
      case WalkStep::Kind::settle:
        std::erase_if(pending_, [](const Pending& p) { return p.slot >= 0; });
        return;
      case WalkStep::Kind::reclaim: {
        auto sent = static_cast<int>(slot(value_facts(walk_.op(step.op).inputs[0]), action_->microbatch));
        std::erase_if(pending_, [&](const Pending& p) { return p.op == step.op && p.slot == sent; });
        return;
      }
      case WalkStep::Kind::wait:
        BUG_IF(step.op < 0 || static_cast<size_t>(step.op) >= ops_.size() ||
                   !ops_[static_cast<size_t>(step.op)].on_comm_lane,
               "after {}: op {} is waited for, which is not on the comm lane", after_, step.op);
        // The lane keeps its order: what started before it has ended too.
        if (int64_t at = started(step.op); at != 0)
          std::erase_if(pending_, [&](const Pending& p) { return p.slot < 0 && started(p.op) <= at; });
        return;
      case WalkStep::Kind::start:
        start(step.op);
        return;
    }
  }

  int64_t& started(int32_t number) { return started_[static_cast<size_t>(number)]; }

  void start(int32_t number) {
    const OpFacts& op = ops_[static_cast<size_t>(number)];
    const int microbatch = action_->microbatch;
    if (op.on_comm_lane) started(number) = ++clock_;
    // For the first microbatch of a step there is no sum yet.
    bool fresh = op.starts_sum && first_microbatches_[*walk_.region_of(*action_)] == microbatch;
    for (const InputFacts& input : std::span(inputs_).subspan(op.first_input, op.input_count))
      if (!(fresh ? input.is_over_when_fresh : input.is_over)) read(number, value_facts(input.value));
    if (!op.workspace.empty()) {
      touch(number, op.workspace, Access::write);
      contents_.write(op.workspace, 0);
    }
    const std::span<const OutputFacts> outputs = std::span(outputs_).subspan(op.first_output, op.output_count);
    for (const OutputFacts& output : outputs) {
      const ValueFacts& value = value_facts(output.value);
      if (output.view_of >= 0) {  // the same bytes under another name
        made(value, microbatch) = {made(value_facts(output.view_of), microbatch).content, microbatch};
        continue;
      }
      touch(number, run_of(value, microbatch), Access::write);
      write(value, microbatch, microbatch);
    }
    // Outputs of one op that lie in each other's way.
    for (const OutputFacts& output : outputs) {
      const ValueFacts& value = value_facts(output.value);
      BUG_IF(!contents_.holds(run_of(value, microbatch), made(value, microbatch).content),
             "after {}: outputs of {} overlap: %{} ({})", after_, walk_.op(number).path, output.value,
             value.value->path);
    }
  }

  void read(int32_t number, const ValueFacts& facts) {
    const OpFacts& op = ops_[static_cast<size_t>(number)];
    const int microbatch = action_->microbatch;
    const Made& m = made(facts, microbatch);
    BUG_IF(m.content == 0, "after {}: {} reads %{} ({}) before it is made", after_, walk_.op(number).path,
           facts.value->id, facts.value->path);
    bool of_microbatch =
        facts.is_of_microbatch && action_->region != RegionKind::update && m.microbatch != kAnyMicrobatch;
    BUG_IF(of_microbatch && m.microbatch != microbatch,
           "after {}: {} reads %{} ({}) of microbatch {} for microbatch {}", after_, walk_.op(number).path,
           facts.value->id, facts.value->path, m.microbatch, microbatch);
    const SegmentRun& bytes = run_of(facts, microbatch);
    BUG_IF(!contents_.holds(bytes, m.content), "after {}: {} reads %{} ({}), whose bytes were overwritten or freed",
           after_, walk_.op(number).path, facts.value->id, facts.value->path);
    touch(number, bytes, Access::read);
    if (op.holds_inputs) pending_.push_back({number, static_cast<int>(slot(facts, microbatch)), bytes});
  }

  // Versions of a sum over microbatches are activations that live in a gradient's buffer.
  bool origin_is_activation(const Value& value) const {
    BufferClass kind =
        value.buffer < 0 ? BufferClass::activations : program_.buffers[static_cast<size_t>(value.buffer)].kind;
    return kind == BufferClass::activations || kind == BufferClass::saved;
  }

  void write_as_host(const ValueFacts& value, int microbatch) {
    touch(kHost, run_of(value, microbatch), Access::write);
    write(value, microbatch, microbatch);
  }

  enum class Access : uint8_t { read, write };
  static constexpr int32_t kHost = -1;  // in place of an op's number

  void touch(int32_t number, const SegmentRun& bytes, Access access) {
    if (bytes.empty()) return;
    bool comm = number != kHost && ops_[static_cast<size_t>(number)].on_comm_lane;
    for (const Pending& p : pending_) {
      if (!p.run.meets(bytes) || (access == Access::read && !p.writes)) continue;
      if (comm && p.slot < 0) continue;  // the lane keeps its order
      BUG("after {}: {} {} bytes that {} still {}: a wait is missing", after_,
          number == kHost ? std::string("the host") : walk_.op(number).path,
          access == Access::read ? "reads" : "writes", walk_.op(p.op).path, p.writes ? "writes" : "reads");
    }
    if (comm) pending_.push_back({number, -1, bytes, access == Access::write});
  }

  const Program& program_;
  std::string_view after_;
  Walk walk_;
  std::vector<SegmentRun> runs_;  // in the order of all_ranges
  ArenaContents contents_;
  std::vector<HostAccess> feeds_, fetches_;
  std::vector<ValueFacts> values_;
  std::vector<OpFacts> ops_;             // by number
  std::vector<InputFacts> inputs_;       // of all ops
  std::vector<OutputFacts> outputs_;     // of all ops
  std::vector<Made> made_;               // by value and slot
  std::vector<ValueId> stored_;          // by value: the first of its versions
  std::vector<int> first_microbatches_;  // by region
  std::vector<Pending> pending_;
  std::vector<int64_t> started_;  // by op of the comm lane: when it last ran; 0: not yet
  const Action* action_ = nullptr;
  ArenaContents::Content last_content_ = 0;
  int64_t clock_ = 0;
};

}  // namespace

void verify_memory(const Program& program, std::string_view after) {
  DryRun(program, after).run();
}

}  // namespace sextant
