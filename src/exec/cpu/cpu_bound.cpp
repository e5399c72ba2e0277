#include "exec/cpu/cpu_bound.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>

#include "base/error.h"
#include "exec/cpu/kernel.h"
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
  const std::string* place = nullptr;        // what the rank's whereabouts call it; null when nobody asks
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

// "layers.1.attn.out.moved (all_reduce over tp)"
std::string place_of(const Op& op) {
  std::string axes = op.attrs.text_or("axes", "");
  return fmt::format("{} ({}{}{})", op.path, op.attrs.text_or("transfer", std::string(op.def->name)),
                     axes.empty() ? "" : " over ", axes);
}

// An operand whose bytes are elsewhere for every microbatch.
struct SlottedOperand {
  size_t op, operand;
  bool output;
  std::byte* base;
  int64_t bytes;
  int slots;
};

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
      : program_(program), arena_(arena), team_(parts.team), rank_(parts.rank), wire_(parts.wire), comm_wire_(parts.comm_wire),
        lane_(parts.comm_lane) {
    BUG_IF(arena.bytes() < program.arena_bytes, "arena of {} bytes for a program of {}", arena.bytes(),
           program.arena_bytes);
    place_values();
    size_t op_index = 0;
    for (const Region& region : program.regions) {
      BoundRegion bound{region.kind, region.chunk, {}, {}, last_microbatch(program, region)};
      for (const Op& op : region.ops) {
        bound.ops.push_back(bind_op(op, program.workspaces[op_index++]));
        bound.ops.back().first_microbatch = first_microbatch(program, region);
      }
      for (size_t i = 0; i < region.ops.size(); ++i) note_slots(bound, i, region.ops[i]);
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
      wire_->channel.transport.whereabouts().begin_action("FBWU"[static_cast<size_t>(action.region)], action.chunk,
                                                          action.microbatch);
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

  void write(const Value& value, std::span<const std::byte> source, int64_t offset, int microbatch) override {
    std::memcpy(place(value, source.size(), offset, microbatch), source.data(), source.size());
  }
  void read(const Value& value, std::span<std::byte> destination, int64_t offset) const override {
    std::memcpy(destination.data(), place(value, destination.size(), offset, 0), destination.size());
  }

 private:
  std::byte* at(int64_t offset) const { return arena_.data() + offset; }

  const Buffer& buffer_of(const Value& value) const {
    BUG_IF(value.buffer < 0, "{} has no buffer", value.path);
    return program_.buffers[static_cast<size_t>(value.buffer)];
  }

  std::byte* place(const Value& value, size_t bytes, int64_t offset, int microbatch) const {
    BUG_IF(offset < 0 || offset + static_cast<int64_t>(bytes) > value.local_bytes().n, "{}: {} bytes at {} of {}",
           value.path, bytes, offset, value.local_bytes().n);
    const Buffer& buffer = buffer_of(value);
    return at(buffer.offset + microbatch % buffer.slots * buffer.bytes + offset);
  }

  // What this rank holds of each value that has bytes.
  void place_values() {
    coordinate_ = coordinate_of(program_.mesh, rank_);
    placements_.resize(program_.values.size());
    for (const Value& value : program_.values)
      for (int dim = 0; dim < value.shape.rank(); ++dim)
        placements_[static_cast<size_t>(value.id)].dims.push_back(
            held(value.shape[dim], value.layout, dim, program_.mesh, coordinate_));
  }

  BoundOp bind_op(const Op& op, int32_t workspace) {
    BoundOp bound{&op, &cpu_kernel(*op.def), tensors(op.inputs), tensors(op.outputs),
                  workspace < 0 ? nullptr : at(program_.buffers[static_cast<size_t>(workspace)].offset), nullptr};
    if (wire_) bound.place = wire_->channel.transport.whereabouts().keep(place_of(op));
    bound.on_lane = lane_ && on_comm_lane(op);
    if (bound.kernel->prepare)
      bound.prepared = bound.kernel->prepare({op, program_, rank_, coordinate_, bound.on_lane ? comm_wire_ : wire_});
    return bound;
  }

  std::vector<Tensor> tensors(const std::vector<ValueId>& ids) const {
    std::vector<Tensor> out;
    for (ValueId id : ids) {
      const Value& value = program_[id];
      out.push_back({at(buffer_of(value).offset), value.dtype, value.local, &placements_[static_cast<size_t>(id)]});
    }
    return out;
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

  void note_slots(BoundRegion& region, size_t index, const Op& op) {
    for (bool output : {false, true}) {
      const std::vector<ValueId>& ids = output ? op.outputs : op.inputs;
      for (size_t i = 0; i < ids.size(); ++i) {
        const Buffer& buffer = buffer_of(program_[ids[i]]);
        most_slots_ = std::max(most_slots_, static_cast<int>(buffer.slots));
        if (buffer.slots > 1) region.slotted.push_back({index, i, output, at(buffer.offset), buffer.bytes, buffer.slots});
      }
    }
  }

  static void move_to_slots(BoundRegion& region, int microbatch) {
    for (const SlottedOperand& s : region.slotted) {
      BoundOp& op = region.ops[s.op];
      (s.output ? op.out : op.in)[s.operand].data = s.base + microbatch % s.slots * s.bytes;
    }
  }

  void run_op(BoundOp& op, int microbatch) {
    if (op.place) wire_->channel.transport.whereabouts().arrive(op.place);
    call_kernel(op, microbatch, team_);
  }

  void run_traced(BoundOp& op, const Action& action, Trace& trace) {
    using Clock = std::chrono::steady_clock;
    auto seconds = [](Clock::time_point t) { return std::chrono::duration<double>(t.time_since_epoch()).count(); };
    double start = seconds(Clock::now());
    run_op(op, action.microbatch);
    trace.push_back({op.op->path, std::string(op.op->def->name), start, seconds(Clock::now())});
  }

  const Program& program_;
  HostArena& arena_;
  ThreadTeam& team_;
  int rank_;
  Wire *wire_, *comm_wire_;
  Lane* lane_;
  Coordinate coordinate_;
  std::vector<Placement> placements_;  // by value
  std::vector<BoundRegion> regions_;
  int most_slots_ = 1;
};

}  // namespace

std::unique_ptr<Bound> bind_on_cpu(const Program& program, HostArena& arena, const RankParts& parts) {
  return std::make_unique<CpuBound>(program, arena, parts);
}

void run_posted_op(void* op, int microbatch, ThreadTeam& team, Whereabouts& whereabouts) {
  BoundOp& bound = *static_cast<BoundOp*>(op);
  whereabouts.arrive_beside(bound.place);
  call_kernel(bound, microbatch, team);
  whereabouts.arrive_beside(nullptr);  // not when it throws: then that is where it stands
}

}  // namespace sextant
