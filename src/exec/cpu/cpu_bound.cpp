#include "exec/cpu/cpu_bound.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "base/error.h"
#include "comm/message_timer.h"
#include "comm/payload_check.h"
#include "exec/addresses.h"
#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/gemm_check.h"
#include "exec/cpu/state_check.h"
#include "exec/cpu/wide_operands.h"
#include "exec/gemm_fault.h"
#include "exec/op_place.h"
#include "ir/alias.h"
#include "ir/lane.h"
#include "targets/cpu/cpu_target.h"
#include "targets/cpu/widening.h"

namespace sextant {

HostArena::HostArena(int64_t bytes, int64_t host_bytes, const FileSpace& file)
    : pages_(bytes), host_pages_(host_bytes), file_(file.bytes > 0 ? std::make_unique<NvmeFile>(file) : nullptr) {}

namespace {

struct BoundOp {
  const Op* op;
  const CpuKernel* kernel;
  std::vector<Tensor> in;
  std::vector<Tensor> out;
  std::byte* workspace;
  std::unique_ptr<PreparedKernel> prepared;  // null for plain kernels
  std::optional<WideOperands> wide = {};     // where operands are in 16 bits
  const std::string* place = nullptr;        // what the rank's status calls it; null where none is kept
  int first_microbatch = 0;                  // that its region runs for, in a step
  bool on_lane = false;                      // runs on the comm lane
  uint64_t posted = 0;                       // its number there, the last time it ran
  std::optional<Action> unseen = {};         // of that run, until an observer has seen what it made
  uint64_t name = 0;                         // as StepChecks draws by
  std::byte* check_scratch = nullptr;        // null: its products are never checked
  Wire* wire = nullptr;                      // that it talks through
  PayloadCheck::Asked messages = {};         // of its next run
};

void call_kernel(BoundOp& op, int microbatch, ThreadTeam& team, cpu::GemmCheck* check = nullptr) {
  SumState sum = starts_sum(*op.op) && microbatch == op.first_microbatch ? SumState::fresh : SumState::running;
  if (op.wide) op.wide->widen(op.in, op.out, team);
  std::span<const Tensor> in = op.in, out = op.out;
  if (op.wide) in = op.wide->in(), out = op.wide->out();
  KernelCall call{in, out, op.op->attrs, op.workspace, team, microbatch, sum, check};
  if (op.wire) op.wire->payload_check.begin(op.wire->channel, op.messages, op.place ? *op.place : op.op->path);
  op.prepared ? op.prepared->run(call) : op.kernel->run(call);
  if (op.wide) op.wide->round(op.out, team);
}

// Of an op whose kernel computes; those that move bytes take them as they are. The kernel's own scratch lies behind it.
void widen_operands(BoundOp& bound) {
  const KernelTable& needs = cpu_kernel_needs();
  const OpDef& def = *bound.op->def;
  if (needs.elements(def) == Elements::any) return;
  cpu::Widening widening(*bound.op, types_of(bound.in), types_of(bound.out), needs.bf16_inputs(def));
  if (!widening.needed()) return;
  bound.wide.emplace(widening, bound.in, bound.out, bound.workspace);
  bound.workspace += widening.bytes();
}

class CpuBound final : public Bound {
 public:
  CpuBound(const Program& program, HostArena& arena, const RankParts& parts)
      : program_(program),
        walk_(program),
        addresses_(program, parts.rank, arena.data(), arena.host_data()),
        file_(arena.file()),
        team_(parts.team),
        states_(program, addresses_, arena.checksums(), parts.team),
        rank_(parts.rank),
        wire_(parts.wire),
        comm_wire_(parts.comm_wire),
        lane_(parts.comm_lane) {
    BUG_IF(arena.bytes() < program.arena_bytes, "arena of {} bytes for a program of {}", arena.bytes(),
           program.arena_bytes);
    BUG_IF(arena.host_bytes() < program.host_arena.all, "{} bytes of the host for a program of {}", arena.host_bytes(),
           program.host_arena.all);
    BUG_IF(arena.nvme_bytes() < program.nvme_arena.all, "a file of {} bytes for a program of {}", arena.nvme_bytes(),
           program.nvme_arena.all);
    ops_.reserve(walk_.op_count());
    written_.reserve(walk_.op_count());
    for (const Region& region : program.regions) {
      for (const Op& op : region.ops) {
        ops_.push_back(bind_op(op, program.workspaces[ops_.size()]));
        ops_.back().first_microbatch = first_microbatch(program, region);
      }
      slotted_.push_back(addresses_.slotted(region));
      for (const SlottedOperand& operand : slotted_.back()) most_slots_ = std::max(most_slots_, operand.slots);
    }
  }

  // Pending ops of the comm lane still use this memory, so the destructor waits for them. After a failed run their
  // messages fail too.
  ~CpuBound() override {
    try {
      if (lane_) lane_->wait_all();
    } catch (...) {
      // The consumer of the result has been notified.
    }
  }

  const Program& program() const override { return program_; }
  int rank() const override { return rank_; }
  bool checks_gemms() const override { return true; }
  bool checks_messages() const override { return true; }
  bool is_observed_in_place() const override { return true; }

  void run(std::span<const Action> unit, Trace* trace) override {
    std::array<bool, kMostParts> begun{}, moved{};
    for (const WalkStep& step : walk_.steps(unit)) {
      auto part = static_cast<size_t>(step.part);
      const Action& action = unit[part];
      if (!std::exchange(begun[part], true) && wire_)
        wire_->channel.transport.rank_status().begin_action(letter_of(action.region), action.chunk, action.microbatch);
      // Sends from this slot, which stand first, still read the operands as they are.
      bool reads_slot = step.kind == WalkStep::Kind::settle || step.kind == WalkStep::Kind::reclaim;
      if (!reads_slot && !std::exchange(moved[part], true)) move_to_slots(*walk_.region_of(action), action.microbatch);
      note(step);
      take(step, action, trace);
    }
  }

  void settle() override {
    MessageTimer timer(rank_status());
    if (lane_) lane_->wait_all();
    record_written(UINT64_MAX);
    for (BoundOp& op : ops_) {
      show_posted(op);
      if (op.prepared)
        for (int slot = 0; slot < most_slots_; ++slot) op.prepared->settle(slot);
    }
  }

  void record_checksums() override { states_.record_all(); }
  bool has_checksums() const override { return states_.has_checksums(); }
  void verify_checksums() const override { states_.verify_all(rank_, here()); }

  int64_t fetch(const Value& scalar) override {
    float number = 0;
    read(scalar, std::as_writable_bytes(std::span(&number, 1)), 0);
    fetched_[static_cast<size_t>(fetches_ % kFetchesUnderWay)] = number;
    return fetches_++;
  }
  float collect(int64_t ticket) override { return fetched_[static_cast<size_t>(ticket % kFetchesUnderWay)]; }

  void write(const Value& value, std::span<const std::byte> source, int64_t offset, int microbatch) override {
    if (value.space == MemorySpace::nvme)
      return file_->write(source, addresses_.place_in_file(value, source.size(), offset));
    std::memcpy(addresses_.place(value, source.size(), offset, microbatch), source.data(), source.size());
  }
  void read(const Value& value, std::span<std::byte> destination, int64_t offset) const override {
    if (value.space == MemorySpace::nvme)
      return file_->read(destination, addresses_.place_in_file(value, destination.size(), offset));
    std::memcpy(destination.data(), addresses_.place(value, destination.size(), offset, 0), destination.size());
  }

 private:
  BoundOp bind_op(const Op& op, int32_t workspace) {
    BoundOp bound{&op,
                  &cpu_kernel(*op.def),
                  addresses_.tensors(op.inputs),
                  addresses_.tensors(op.outputs),
                  addresses_.workspace(workspace),
                  nullptr};
    if (wire_) bound.place = wire_->channel.transport.rank_status().keep(place_of(op));
    std::byte* scratch = bound.workspace;
    widen_operands(bound);
    bound.on_lane = lane_ && on_comm_lane(op);
    bound.name = drawn_name_of(op);
    if (cpu_kernel_needs().can_check(*op.def)) products_.push_back(ops_.size());
    if (op.attrs.has("checked"))
      bound.check_scratch = scratch + cpu_scratch(op, types_of(bound.in), types_of(bound.out), team_.size()).check_at;
    if (!bound.kernel->prepare) return bound;
    Wire* wire = bound.on_lane ? comm_wire_ : wire_;
    bound.prepared = bound.kernel->prepare({op, program_, rank_, addresses_.coordinate(), wire, file_});
    if (!bound.prepared || !bound.prepared->is_collective()) return bound;
    bound.wire = wire;
    collectives_.push_back(ops_.size());
    return bound;
  }

  void take(const WalkStep& step, const Action& action, Trace* trace) {
    if (step.kind == WalkStep::Kind::settle) return settle();
    BoundOp& op = ops_[static_cast<size_t>(step.op)];
    bool in_message = step.kind != WalkStep::Kind::start || (!op.on_lane && op.op->def->message);
    MessageTimer timer(in_message ? rank_status() : nullptr);
    if (step.kind == WalkStep::Kind::reclaim) {
      op.prepared->settle(action.microbatch);
    } else if (step.kind == WalkStep::Kind::wait) {
      if (op.on_lane) lane_->wait(op.posted);
      if (op.on_lane) record_written(op.posted);
      show_posted(op);
    } else if (op.on_lane) {
      choose_messages(op);
      states_.verify_before(number_of(op), op.op->block, rank_, here());
      op.posted = lane_->post(&op, action.microbatch);
      if (states_.writes(number_of(op))) written_.push_back(number_of(op));
      if (observes(op)) op.unseen = action;
    } else {
      trace ? run_traced(op, action, *trace) : run_op(op, action.microbatch);
      if (observes(op)) observer()->after({*op.op, action, op.out});
    }
  }

  // Values in the nvme file are not in memory. They are observed when they are computed, before they are written to the
  // file.
  bool observes(const BoundOp& op) const {
    return observer() && (op.out.empty() || program_[op.op->outputs[0]].space != MemorySpace::nvme);
  }

  RankStatus* rank_status() const { return wire_ ? &wire_->channel.transport.rank_status() : nullptr; }

  void show_posted(BoundOp& op) {
    if (!op.unseen) return;
    if (observer()) observer()->after({*op.op, *op.unseen, op.out});
    op.unseen.reset();
  }

  void move_to_slots(size_t region, int microbatch) {
    for (const SlottedOperand& s : slotted_[region]) {
      BoundOp& op = ops_[static_cast<size_t>(walk_.first_op(region)) + s.op];
      (s.side == SlottedOperand::Side::output ? op.out : op.in)[s.operand].data = s.at(microbatch);
    }
  }

  void run_op(BoundOp& op, int microbatch) {
    if (op.place) wire_->channel.transport.rank_status().arrive(op.place);
    choose_messages(op);
    states_.verify_before(number_of(op), op.op->block, rank_, here());
    compute(op, microbatch);
    states_.record_after(number_of(op));
  }

  void compute(BoundOp& op, int microbatch) {
    bool verifies = op.check_scratch && checks().checks_gemm(op.name);
    bool flips = checks().flips_gemm && !products_.empty() && is_drawn(op, products_);
    if (!verifies && !flips) return call_kernel(op, microbatch, team_);
    cpu::GemmCheck check{.signs = {checks().random("gemm_signs").bits(op.name), "gemm_signs"},
                         .scratch = op.check_scratch,
                         .verifies = verifies,
                         .flips = flips ? 1 : 0};
    call_kernel(op, microbatch, team_, &check);
    if (check.found) end_by_fault(check.fault, *op.op, rank_, here());
  }

  size_t number_of(const BoundOp& op) const { return static_cast<size_t>(&op - ops_.data()); }
  std::string here() const { return wire_ ? wire_->channel.transport.here() : ""; }

  // Ops of the comm lane that have ended, up to the one with this number there, have written what they write.
  void record_written(uint64_t posted) {
    std::erase_if(written_, [&](size_t op) {
      if (ops_[op].posted > posted) return false;
      states_.record_after(op);
      return true;
    });
  }

  // Whether messages of the op's next run are checked.
  void choose_messages(BoundOp& op) {
    if (!op.wire) return;
    op.messages = {.verify = checks().checks_collective(op.name),
                   .flip = checks().flips_message && is_drawn(op, collectives_),
                   .signs = checks().random("sum_signs").bits(op.name)};
  }

  // One op of a step, whichever the draw says.
  bool is_drawn(const BoundOp& op, const std::vector<size_t>& among) const {
    return &op == &ops_[among[checks().random("flip").below(0, among.size())]];
  }

  void run_traced(BoundOp& op, const Action& action, Trace& trace) {
    using Clock = std::chrono::steady_clock;
    auto seconds = [](Clock::time_point t) { return std::chrono::duration<double>(t.time_since_epoch()).count(); };
    double start = seconds(Clock::now());
    run_op(op, action.microbatch);
    Event event{op.op->path, std::string(op.op->def->name), start, seconds(Clock::now())};
    Cost cost = local_cost(program_, *op.op);
    event.flops = cost.flops.n;
    event.bytes = cost.read.n + cost.written.n;
    event.rank = rank_;
    trace.push_back(std::move(event));
  }

  const Program& program_;
  Walk walk_;
  Addresses addresses_;
  NvmeFile* file_;  // null where the Program keeps nothing in one
  ThreadTeam& team_;
  StateCheck states_;
  int rank_;
  Wire *wire_, *comm_wire_;
  LaneThread* lane_;
  std::vector<BoundOp> ops_;                    // by number
  std::vector<size_t> products_, collectives_;  // the ops that make matrix products, and those that are collectives
  std::vector<size_t> written_;  // ops of the comm lane that write states and are not known to have ended
  std::vector<std::vector<SlottedOperand>> slotted_;  // by region
  int most_slots_ = 1;
  std::array<float, kFetchesUnderWay> fetched_{};
  int64_t fetches_ = 0;
};

}  // namespace

std::unique_ptr<Bound> bind_on_cpu(const Program& program, HostArena& arena, const RankParts& parts) {
  return std::make_unique<CpuBound>(program, arena, parts);
}

void run_posted_op(void* op, int microbatch, ThreadTeam& team, RankStatus* rank_status) {
  BoundOp& bound = *static_cast<BoundOp*>(op);
  if (rank_status) rank_status->arrive_beside(bound.place);
  call_kernel(bound, microbatch, team);
  if (rank_status) rank_status->arrive_beside(nullptr);  // not when it throws: then that is where it stands
}

}  // namespace sextant
