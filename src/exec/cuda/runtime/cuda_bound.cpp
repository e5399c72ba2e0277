#include "exec/cuda/runtime/cuda_bound.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"
#include "exec/addresses.h"
#include "exec/cuda/runtime/check.h"
#include "exec/cuda/runtime/fill.h"
#include "exec/cuda/runtime/host_exchange.h"
#include "exec/cuda/runtime/kernel.h"
#include "exec/op_place.h"
#include "ir/alias.h"
#include "ir/lane.h"

namespace sextant {

CudaArena::CudaArena(const CudaDevice& device, int64_t bytes) : device_(device), bytes_(bytes) {
  device.use();
  if (bytes == 0) return;
  void* at = nullptr;
  cudaError_t status = cudaMalloc(&at, static_cast<size_t>(bytes));
  if (status != cudaSuccess)
    throw RunError("memory",
                   fmt::format("cannot allocate {} for the arena on {}: {}", human(Bytes{bytes}), device.name(),
                               cudaGetErrorString(status)),
                   "use a smaller batch.microbatch or batch.seq, or train.recompute = \"full\"");
  data_ = static_cast<std::byte*>(at);
  check_cuda(cudaMemsetAsync(data_, 0, static_cast<size_t>(bytes), device.stream()), "clearing the arena");
}

CudaArena::~CudaArena() {
  cudaSetDevice(device_.index());
  if (data_) cudaFree(data_);
}

namespace {

struct BoundOp {
  const Op* op;
  const CudaKernel* kernel;
  std::vector<Tensor> in, out;
  std::byte* workspace;
  std::unique_ptr<PreparedCudaKernel> prepared;  // null for plain kernels
  Cost cost;
  bool on_comm_lane = false;
  cudaEvent_t done = nullptr;              // on the comm lane: recorded behind it
  std::vector<const BoundOp*> joins = {};  // ops of the comm lane whose results it reads
  const std::string* place = nullptr;      // what the rank's rank_status call it; null when nobody asks
};

// Ops [first, end) of a region that go out in one launch.
struct Launch {
  size_t first, end;
};

// What decides the work that a region's launches do, beside the region itself.
struct Variant {
  int slot = 0;  // which addresses its operands have
  SumState sum = SumState::running;
  bool last = false;  // of its microbatches
  auto operator<=>(const Variant&) const = default;
};

struct Recorded {
  cudaGraphExec_t graph;
  std::map<std::string, int64_t> sent;  // bytes, by axes, each time it runs
};

struct BoundRegion {
  RegionKind kind;
  int chunk;
  std::vector<BoundOp> ops;
  std::vector<Launch> launches;
  std::vector<SlottedOperand> slotted;
  int first_microbatch, last_microbatch;
  int slot_period = 1;
  bool capturable = true;
  std::map<Variant, Recorded> graphs;
};

// One graph's worth of work on a stream, or none.
class Capture {
 public:
  explicit Capture(cudaStream_t stream) : stream_(stream) {
    check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "beginning a capture");
  }
  ~Capture() {
    if (!open_) return;
    cudaGraph_t graph = nullptr;  // what was captured before something threw
    if (cudaStreamEndCapture(stream_, &graph) == cudaSuccess && graph) cudaGraphDestroy(graph);
  }
  cudaGraphExec_t finish() {
    open_ = false;
    cudaGraph_t graph = nullptr;
    check_cuda(cudaStreamEndCapture(stream_, &graph), "ending a capture");
    cudaGraphExec_t ready = nullptr;
    cudaError_t status = cudaGraphInstantiate(&ready, graph, 0);
    cudaGraphDestroy(graph);
    check_cuda(status, "making a graph ready");
    return ready;
  }

 private:
  cudaStream_t stream_;
  bool open_ = true;
};

class CudaBound final : public Bound {
 public:
  CudaBound(const Program& program, CudaArena& arena, const CudaRankParts& parts)
      : program_(program),
        device_(parts.device),
        rank_(parts.rank),
        wires_(parts.wires),
        addresses_(program, parts.rank, arena.data()),
        stream_(parts.device.stream()),
        exchange_(stream_, kFetchesUnderWay) {
    BUG_IF(arena.bytes() < program.arena_bytes, "arena of {} bytes for a program of {}", arena.bytes(),
           program.arena_bytes);
    check_cuda(cudaStreamCreateWithFlags(&comm_stream_, cudaStreamNonBlocking), "a stream");
    check_cuda(cudaEventCreateWithFlags(&fork_, cudaEventDisableTiming), "an event");
    size_t op_index = 0;
    for (const Region& region : program.regions) {
      regions_.push_back({.kind = region.kind,
                          .chunk = region.chunk,
                          .slotted = addresses_.slotted(region),
                          .first_microbatch = first_microbatch(program, region),
                          .last_microbatch = last_microbatch(program, region)});
      BoundRegion& bound = regions_.back();
      for (const Op& op : region.ops) bound.ops.push_back(bind_op(op, program.workspaces[op_index++]));
      for (const SlottedOperand& s : bound.slotted) bound.slot_period = std::lcm(bound.slot_period, s.slots);
      for (const BoundOp& op : bound.ops)
        bound.capturable = bound.capturable && (!op.prepared || op.prepared->capturable());
      find_launches(bound);
    }
    find_joins();
    if (wires_) wires_->open_groups();
  }

  ~CudaBound() override {
    cudaSetDevice(device_.index());
    cudaStreamSynchronize(stream_);
    for (BoundRegion& region : regions_) {
      for (auto& [variant, recorded] : region.graphs) cudaGraphExecDestroy(recorded.graph);
      for (BoundOp& op : region.ops)
        if (op.done) cudaEventDestroy(op.done);
    }
    if (fork_) cudaEventDestroy(fork_);
    if (comm_stream_) cudaStreamDestroy(comm_stream_);
  }

  const Program& program() const override { return program_; }
  int rank() const override { return rank_; }

  void run(const Action& action, Trace* trace) override {
    device_.use();
    if (action.region == RegionKind::update) settle();
    if (wires_)
      wires_->transport().rank_status().begin_action(letter_of(action.region), action.chunk, action.microbatch);
    for (BoundRegion& region : regions_) {
      if (region.kind != action.region || region.chunk != action.chunk) continue;
      for (BoundOp& op : region.ops)
        if (op.prepared) op.prepared->settle(action.microbatch);
      Variant variant{action.microbatch % region.slot_period,
                      action.microbatch == region.first_microbatch ? SumState::fresh : SumState::running,
                      action.microbatch == region.last_microbatch};
      if (trace)
        run_traced(region, variant, action, *trace);
      else if (region.capturable)
        replay(region, variant, action);
      else
        launch_all(region, variant, action);
    }
  }

  void settle() override {
    for (BoundRegion& region : regions_)
      for (BoundOp& op : region.ops)
        if (op.prepared)
          for (int slot = 0; slot < region.slot_period; ++slot) op.prepared->settle(slot);
  }

  void write(const Value& value, std::span<const std::byte> source, int64_t offset, int microbatch) override {
    device_.use();
    exchange_.send(addresses_.place(value, source.size(), offset, microbatch), source);
  }
  void read(const Value& value, std::span<std::byte> destination, int64_t offset) const override {
    device_.use();
    exchange_.receive(destination, addresses_.place(value, destination.size(), offset, 0));
  }
  void draw(const Value& value, const DrawnPiece& piece) override {
    device_.use();
    fill_drawn(addresses_.place(value, static_cast<size_t>(value.local_bytes().n), 0, 0), value.dtype, piece, stream_);
    check_cuda(cudaGetLastError(), value.path);
  }
  int64_t fetch(const Value& scalar) override { return exchange_.fetch(addresses_.place(scalar, sizeof(float), 0, 0)); }
  float collect(int64_t ticket) override { return exchange_.collect(ticket); }

 private:
  BoundOp bind_op(const Op& op, int32_t workspace) {
    BoundOp bound{&op,
                  &cuda_kernel(*op.def),
                  addresses_.tensors(op.inputs),
                  addresses_.tensors(op.outputs),
                  addresses_.workspace(workspace),
                  nullptr,
                  local_cost(program_, op)};
    if (bound.kernel->prepare)
      bound.prepared =
          bound.kernel->prepare({op, program_, rank_, addresses_.coordinate(), bound.in, bound.out, device_, wires_});
    if (wires_) bound.place = wires_->transport().rank_status().keep(place_of(op));
    bound.on_comm_lane = on_comm_lane(op) && (!bound.prepared || bound.prepared->capturable());
    if (bound.on_comm_lane) check_cuda(cudaEventCreateWithFlags(&bound.done, cudaEventDisableTiming), "an event");
    return bound;
  }

  // Ops of one kind that stand side by side go out together where their kernel can do that.
  static void find_launches(BoundRegion& region) {
    for (size_t i = 0; i < region.ops.size();) {
      size_t end = i + 1;
      if (region.ops[i].kernel->launch_all)
        while (end < region.ops.size() && region.ops[end].kernel == region.ops[i].kernel) ++end;
      region.launches.push_back({i, end});
      i = end;
    }
  }

  // Before an op runs, whatever the comm lane makes for it must be there.
  void find_joins() {
    std::map<ValueId, const BoundOp*> on_lane;
    for (BoundRegion& region : regions_)
      for (BoundOp& op : region.ops)
        if (op.on_comm_lane)
          for (ValueId id : op.op->outputs) on_lane[id] = &op;
    for (BoundRegion& region : regions_)
      for (BoundOp& op : region.ops)
        for (ValueId id : op.op->inputs)
          if (auto at = on_lane.find(id); at != on_lane.end() && !op.on_comm_lane) op.joins.push_back(at->second);
  }

  CudaCall call_of(const BoundOp& op, const Variant& variant, int microbatch, cudaStream_t stream) const {
    SumState sum = starts_sum(*op.op) ? variant.sum : SumState::running;
    return {op.in, op.out, op.op->attrs, op.workspace, device_, stream, microbatch, sum};
  }

  void launch(BoundRegion& region, const Launch& launch, const Variant& variant, int microbatch) {
    BoundOp& op = region.ops[launch.first];
    if (last_microbatch_only(*op.op) && !variant.last) return;
    if (op.place) wires_->transport().rank_status().arrive(op.place);
    cudaStream_t stream = op.on_comm_lane ? comm_stream_ : stream_;
    if (op.on_comm_lane) {
      check_cuda(cudaEventRecord(fork_, stream_), op.op->path);
      check_cuda(cudaStreamWaitEvent(comm_stream_, fork_), op.op->path);
    }
    for (size_t i = launch.first; i < launch.end; ++i)
      for (const BoundOp* other : region.ops[i].joins)
        if (in_this_pass(*other)) check_cuda(cudaStreamWaitEvent(stream_, other->done), op.op->path);
    if (op.kernel->launch_all) {
      std::vector<CudaCall> calls;
      for (size_t i = launch.first; i < launch.end; ++i)
        calls.push_back(call_of(region.ops[i], variant, microbatch, stream));
      op.kernel->launch_all(calls);
    } else {
      CudaCall call = call_of(op, variant, microbatch, stream);
      op.prepared ? op.prepared->launch(call) : op.kernel->launch(call);
    }
    check_cuda(cudaGetLastError(), op.op->path);
    if (!op.on_comm_lane) return;
    check_cuda(cudaEventRecord(op.done, comm_stream_), op.op->path);
    open_.push_back(&op);
  }

  // The comm lane comes back to the compute lane at the end of every region: a captured graph must be whole, and what
  // it left open cannot be waited for from another.
  bool in_this_pass(const BoundOp& op) const { return std::find(open_.begin(), open_.end(), &op) != open_.end(); }

  void launch_all(BoundRegion& region, const Variant& variant, const Action& action) {
    move_to_slots(region, variant.slot);
    open_.clear();
    for (const Launch& l : region.launches) launch(region, l, variant, action.microbatch);
    for (const BoundOp* op : open_) check_cuda(cudaStreamWaitEvent(stream_, op->done), op->op->path);
  }

  void replay(BoundRegion& region, const Variant& variant, const Action& action) {
    auto at = region.graphs.find(variant);
    if (at == region.graphs.end())
      at = region.graphs.emplace(variant, record(region, variant, action)).first;
    else if (wires_)
      wires_->count_again(at->second.sent);
    check_cuda(cudaGraphLaunch(at->second.graph, stream_), "replaying a region");
  }

  Recorded record(BoundRegion& region, const Variant& variant, const Action& action) {
    std::map<std::string, int64_t> before = wires_ ? wires_->bytes_sent() : std::map<std::string, int64_t>();
    Capture capture(stream_);
    launch_all(region, variant, action);
    Recorded recorded{capture.finish(), wires_ ? wires_->bytes_sent() : std::map<std::string, int64_t>()};
    for (const auto& [axes, bytes] : before) recorded.sent[axes] -= bytes;
    return recorded;
  }

  static void move_to_slots(BoundRegion& region, int slot) {
    for (const SlottedOperand& s : region.slotted) {
      BoundOp& op = region.ops[s.op];
      (s.side == SlottedOperand::Side::output ? op.out : op.in)[s.operand].data = s.at(slot);
    }
  }

  // Launched one by one, with an event before and after each. The lanes are one then: what is measured is the op alone.
  void run_traced(BoundRegion& region, const Variant& variant, const Action& action, Trace& trace) {
    move_to_slots(region, variant.slot);
    open_.clear();
    std::vector<cudaEvent_t> marks(region.launches.size() + 1);
    for (cudaEvent_t& mark : marks) check_cuda(cudaEventCreate(&mark), "an event");
    check_cuda(cudaEventRecord(marks[0], stream_), "tracing");
    for (size_t i = 0; i < region.launches.size(); ++i) {
      launch(region, region.launches[i], variant, action.microbatch);
      for (const BoundOp* op : open_) check_cuda(cudaStreamWaitEvent(stream_, op->done), op->op->path);
      check_cuda(cudaEventRecord(marks[i + 1], stream_), "tracing");
    }
    check_cuda(cudaStreamSynchronize(stream_), "tracing");
    for (size_t i = 0; i < region.launches.size(); ++i)
      add_event(region, region.launches[i], marks[i], marks[i + 1], trace);
    for (cudaEvent_t mark : marks) cudaEventDestroy(mark);
  }

  void add_event(const BoundRegion& region, const Launch& launch, cudaEvent_t begin, cudaEvent_t end, Trace& trace) {
    float ms = 0;
    check_cuda(cudaEventElapsedTime(&ms, begin, end), "tracing");
    const BoundOp& op = region.ops[launch.first];
    Event event{op.op->path, std::string(op.op->def->name), traced_s_, traced_s_ + ms / 1e3};
    if (launch.end > launch.first + 1) event.path += fmt::format(" and {} more", launch.end - launch.first - 1);
    for (size_t i = launch.first; i < launch.end; ++i) {
      event.flops += region.ops[i].cost.flops.n;
      event.bytes += region.ops[i].cost.read.n + region.ops[i].cost.written.n;
    }
    event.lane = op.on_comm_lane ? "comm" : "compute";
    event.rank = rank_;
    traced_s_ = event.end_s;
    trace.push_back(std::move(event));
  }

  const Program& program_;
  CudaDevice& device_;
  int rank_;
  CudaWires* wires_;
  Addresses addresses_;
  cudaStream_t stream_, comm_stream_ = nullptr;
  cudaEvent_t fork_ = nullptr;
  HostExchange exchange_;
  std::vector<BoundRegion> regions_;
  std::vector<const BoundOp*> open_;  // ops of the comm lane that this pass over a region has launched
  double traced_s_ = 0;
};

}  // namespace

std::unique_ptr<Bound> bind_on_cuda(const Program& program, CudaArena& arena, const CudaRankParts& parts) {
  return std::make_unique<CudaBound>(program, arena, parts);
}

}  // namespace sextant
