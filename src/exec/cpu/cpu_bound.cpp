#include "exec/cpu/cpu_bound.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <map>

#include "base/error.h"
#include "exec/addresses.h"
#include "exec/cpu/kernel.h"
#include "exec/op_place.h"
#include "ir/alias.h"
#include "ir/lane.h"

namespace sextant {

HostArena::HostArena(int64_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  void* at = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED)
    throw RunError("memory", fmt::format("cannot allocate {} for the arena", human(Bytes{bytes})),
                   "use a smaller batch.microbatch or batch.seq, or train.recompute = \"full\"");
  data_ = static_cast<std::byte*>(at);
  ::madvise(at, static_cast<size_t>(bytes), MADV_HUGEPAGE);
}

HostArena::~HostArena() {
  if (data_) ::munmap(data_, static_cast<size_t>(bytes_));
}

namespace {

struct BoundOp {
  const Op* op;
  const CpuKernel* kernel;
  std::vector<Tensor> in;
  std::vector<Tensor> out;
  std::byte* workspace;
  std::unique_ptr<PreparedKernel> prepared;  // null for plain kernels
  const std::string* place = nullptr;        // what the rank's rank_status call it; null when nobody asks
  int first_microbatch = 0;                  // that its region runs for, in a step
  bool on_lane = false;                      // runs on the comm lane
  uint64_t posted = 0;                       // its number there, the last time it ran
  std::vector<const BoundOp*> joins = {};    // ops of the comm lane whose results it reads
};

void call_kernel(BoundOp& op, int microbatch, ThreadTeam& team) {
  SumState sum = starts_sum(*op.op) && microbatch == op.first_microbatch ? SumState::fresh : SumState::running;
  KernelCall call{op.in, op.out, op.op->attrs, op.workspace, team, microbatch, sum};
  op.prepared ? op.prepared->run(call) : op.kernel->run(call);
}

struct BoundRegion {
  RegionKind kind;
  int chunk;
  std::vector<BoundOp> ops;
  std::vector<SlottedOperand> slotted;
  int last_microbatch = 0;  // in the schedule
};

class CpuBound final : public Bound {
 public:
  CpuBound(const Program& program, HostArena& arena, const RankParts& parts)
      : program_(program),
        addresses_(program, parts.rank, arena.data()),
        team_(parts.team),
        rank_(parts.rank),
        wire_(parts.wire),
        comm_wire_(parts.comm_wire),
        lane_(parts.comm_lane) {
    BUG_IF(arena.bytes() < program.arena_bytes, "arena of {} bytes for a program of {}", arena.bytes(),
           program.arena_bytes);
    size_t op_index = 0;
    for (const Region& region : program.regions) {
      BoundRegion bound{region.kind, region.chunk, {}, addresses_.slotted(region), last_microbatch(program, region)};
      for (const Op& op : region.ops) {
        bound.ops.push_back(bind_op(op, program.workspaces[op_index++]));
        bound.ops.back().first_microbatch = first_microbatch(program, region);
      }
      for (const SlottedOperand& operand : bound.slotted) most_slots_ = std::max(most_slots_, operand.slots);
      regions_.push_back(std::move(bound));
    }
    find_joins();
  }

  // What the comm lane still does is done to this memory. When the run has failed, its messages fail too.
  ~CpuBound() override {
    try {
      if (lane_) lane_->wait_all();
    } catch (...) {
      // Whoever needed the result has been told.
    }
  }

  const Program& program() const override { return program_; }
  int rank() const override { return rank_; }

  void run(const Action& action, Trace* trace) override {
    if (action.region == RegionKind::update) settle();
    if (wire_)
      wire_->channel.transport.rank_status().begin_action(letter_of(action.region), action.chunk, action.microbatch);
    for (BoundRegion& region : regions_) {
      if (region.kind != action.region || region.chunk != action.chunk) continue;
      for (BoundOp& op : region.ops) {
        if (op.prepared) op.prepared->settle(action.microbatch);
        if (op.on_lane) lane_->wait(op.posted);
      }
      move_to_slots(region, action.microbatch);
      for (BoundOp& op : region.ops) {
        for (const BoundOp* other : op.joins) lane_->wait(other->posted);
        if (last_microbatch_only(*op.op) && action.microbatch != region.last_microbatch) continue;
        if (op.on_lane)
          op.posted = lane_->post(&op, action.microbatch);
        else
          trace ? run_traced(op, action, *trace) : run_op(op, action.microbatch);
      }
    }
  }

  void settle() override {
    if (lane_) lane_->wait_all();
    for (BoundRegion& region : regions_)
      for (BoundOp& op : region.ops)
        if (op.prepared)
          for (int slot = 0; slot < most_slots_; ++slot) op.prepared->settle(slot);
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

  // Before an op runs, whatever the comm lane makes for it must be there.
  void find_joins() {
    std::map<ValueId, const BoundOp*> on_lane;
    for (BoundRegion& region : regions_)
      for (BoundOp& op : region.ops)
        if (op.on_lane)
          for (ValueId id : op.op->outputs) on_lane[id] = &op;
    for (BoundRegion& region : regions_)
      for (BoundOp& op : region.ops)
        for (ValueId id : op.op->inputs)
          if (auto at = on_lane.find(id); at != on_lane.end() && !op.on_lane) op.joins.push_back(at->second);
  }

  static void move_to_slots(BoundRegion& region, int microbatch) {
    for (const SlottedOperand& s : region.slotted) {
      BoundOp& op = region.ops[s.op];
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
  Addresses addresses_;
  ThreadTeam& team_;
  int rank_;
  Wire *wire_, *comm_wire_;
  Lane* lane_;
  std::vector<BoundRegion> regions_;
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
