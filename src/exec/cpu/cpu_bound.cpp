#include "exec/cpu/cpu_bound.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "base/error.h"
#include "exec/addresses.h"
#include "exec/cpu/kernel.h"
#include "exec/op_place.h"
#include "ir/alias.h"
#include "ir/lane.h"

namespace sextant {

namespace {

std::byte* map_zero_pages(int64_t bytes) {
  if (bytes == 0) return nullptr;
  void* at = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED)
    throw RunError("memory", fmt::format("cannot allocate {} for the arena", human(Bytes{bytes})),
                   "use a smaller batch.microbatch or batch.seq, or train.recompute = \"full\"");
  ::madvise(at, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  return static_cast<std::byte*>(at);
}

void unmap_pages(std::byte* at, int64_t bytes) {
  if (at) ::munmap(at, static_cast<size_t>(bytes));
}

}  // namespace

HostArena::HostArena(int64_t bytes, int64_t host_bytes) : bytes_(bytes), host_bytes_(host_bytes) {
  data_ = map_zero_pages(bytes);
  try {
    host_data_ = map_zero_pages(host_bytes);
  } catch (...) {
    unmap_pages(data_, bytes);
    throw;
  }
}

HostArena::~HostArena() {
  unmap_pages(data_, bytes_);
  unmap_pages(host_data_, host_bytes_);
}

namespace {

struct BoundOp {
  const Op* op;
  const CpuKernel* kernel;
  std::vector<Tensor> in;
  std::vector<Tensor> out;
  std::byte* workspace;
  std::unique_ptr<PreparedKernel> prepared;  // null for plain kernels
  const std::string* place = nullptr;        // what the rank's status calls it; null where none is kept
  int first_microbatch = 0;                  // that its region runs for, in a step
  bool on_lane = false;                      // runs on the comm lane
  uint64_t posted = 0;                       // its number there, the last time it ran
  std::optional<Action> unseen = {};         // of that run, until an observer has seen what it made
};

void call_kernel(BoundOp& op, int microbatch, ThreadTeam& team) {
  SumState sum = starts_sum(*op.op) && microbatch == op.first_microbatch ? SumState::fresh : SumState::running;
  KernelCall call{op.in, op.out, op.op->attrs, op.workspace, team, microbatch, sum};
  op.prepared ? op.prepared->run(call) : op.kernel->run(call);
}

class CpuBound final : public Bound {
 public:
  CpuBound(const Program& program, HostArena& arena, const RankParts& parts)
      : program_(program),
        walk_(program),
        addresses_(program, parts.rank, arena.data(), arena.host_data()),
        team_(parts.team),
        rank_(parts.rank),
        wire_(parts.wire),
        comm_wire_(parts.comm_wire),
        lane_(parts.comm_lane) {
    BUG_IF(arena.bytes() < program.arena_bytes, "arena of {} bytes for a program of {}", arena.bytes(),
           program.arena_bytes);
    BUG_IF(arena.host_bytes() < program.host_arena.all, "{} bytes of the host for a program of {}", arena.host_bytes(),
           program.host_arena.all);
    ops_.reserve(walk_.op_count());
    for (const Region& region : program.regions) {
      for (const Op& op : region.ops) {
        ops_.push_back(bind_op(op, program.workspaces[ops_.size()]));
        ops_.back().first_microbatch = first_microbatch(program, region);
      }
      slotted_.push_back(addresses_.slotted(region));
      for (const SlottedOperand& operand : slotted_.back()) most_slots_ = std::max(most_slots_, operand.slots);
    }
  }

  // What the comm lane still does is done to this memory. When the run has failed, its messages fail too.
  ~CpuBound() override {
    try {
      if (lane_) lane_->wait_all();
    } catch (...) {
      // The consumer of the result has been notified.
    }
  }

  const Program& program() const override { return program_; }
  int rank() const override { return rank_; }

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
    if (lane_) lane_->wait_all();
    for (BoundOp& op : ops_) {
      show_posted(op);
      if (op.prepared)
        for (int slot = 0; slot < most_slots_; ++slot) op.prepared->settle(slot);
    }
  }

  int64_t fetch(const Value& scalar) override {
    float number = 0;
    read(scalar, std::as_writable_bytes(std::span(&number, 1)), 0);
    fetched_[static_cast<size_t>(fetches_ % kFetchesUnderWay)] = number;
    return fetches_++;
  }
  float collect(int64_t ticket) override { return fetched_[static_cast<size_t>(ticket % kFetchesUnderWay)]; }

  void write(const Value& value, std::span<const std::byte> source, int64_t offset, int microbatch) override {
    std::memcpy(addresses_.place(value, source.size(), offset, microbatch), source.data(), source.size());
  }
  void read(const Value& value, std::span<std::byte> destination, int64_t offset) const override {
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
    bound.on_lane = lane_ && on_comm_lane(op);
    if (bound.kernel->prepare)
      bound.prepared =
          bound.kernel->prepare({op, program_, rank_, addresses_.coordinate(), bound.on_lane ? comm_wire_ : wire_});
    return bound;
  }

  void take(const WalkStep& step, const Action& action, Trace* trace) {
    if (step.kind == WalkStep::Kind::settle) return settle();
    BoundOp& op = ops_[static_cast<size_t>(step.op)];
    if (step.kind == WalkStep::Kind::reclaim) {
      op.prepared->settle(action.microbatch);
    } else if (step.kind == WalkStep::Kind::wait) {
      if (op.on_lane) lane_->wait(op.posted);
      show_posted(op);
    } else if (op.on_lane) {
      op.posted = lane_->post(&op, action.microbatch);
      if (observer()) op.unseen = action;
    } else {
      trace ? run_traced(op, action, *trace) : run_op(op, action.microbatch);
      if (observer()) observer()->after({*op.op, action, op.out});
    }
  }

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
    call_kernel(op, microbatch, team_);
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
  ThreadTeam& team_;
  int rank_;
  Wire *wire_, *comm_wire_;
  LaneThread* lane_;
  std::vector<BoundOp> ops_;                          // by number
  std::vector<std::vector<SlottedOperand>> slotted_;  // by region
  int most_slots_ = 1;
  std::array<float, kFetchesUnderWay> fetched_{};
  int64_t fetches_ = 0;
};

}  // namespace

std::unique_ptr<Bound> bind_on_cpu(const Program& program, HostArena& arena, const RankParts& parts) {
  return std::make_unique<CpuBound>(program, arena, parts);
}

void run_posted_op(void* op, int microbatch, ThreadTeam& team, RankStatus& rank_status) {
  BoundOp& bound = *static_cast<BoundOp*>(op);
  rank_status.arrive_beside(bound.place);
  call_kernel(bound, microbatch, team);
  rank_status.arrive_beside(nullptr);  // not when it throws: then that is where it stands
}

}  // namespace sextant
