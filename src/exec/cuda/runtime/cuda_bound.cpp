#include "exec/cuda/runtime/cuda_bound.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <span>

#include "base/error.h"
#include "exec/addresses.h"
#include "exec/cpu/kernel.h"
#include "exec/cuda/gemm/gemm_check.h"
#include "exec/cuda/runtime/check.h"
#include "exec/cuda/runtime/device_state_check.h"
#include "exec/cuda/runtime/fault_mailbox.h"
#include "exec/cuda/runtime/fill.h"
#include "exec/cuda/runtime/host_exchange.h"
#include "exec/cuda/runtime/host_run.h"
#include "exec/cuda/runtime/kernel.h"
#include "exec/gemm_fault.h"
#include "exec/op_place.h"
#include "ir/alias.h"
#include "ir/lane.h"
#include "targets/cuda/cuda_target.h"

namespace sextant {

namespace {

struct BoundOp {
  const Op* op;
  const CudaKernel* kernel;  // null for an op of the host
  std::vector<Tensor> in, out;
  std::byte* workspace;
  std::unique_ptr<PreparedCudaKernel> prepared;  // null for plain kernels
  Cost cost;
  bool on_comm_lane = false;
  cudaEvent_t done = nullptr;          // on the comm lane: recorded behind its latest run
  bool ran = false;                    // so that `done` has been recorded
  const std::string* place = nullptr;  // what the rank's status calls it; null where none is kept
  std::unique_ptr<HostRun> on_host = nullptr;
  uint64_t name = 0;                   // as StepChecks draws by
  std::byte* check_scratch = nullptr;  // null: its products are never checked
};

// Key of the work that a region's launches do, together with the region itself.
struct Variant {
  int slot = 0;  // which addresses its operands have
  SumState sum = SumState::running;
  bool last = false;  // of its microbatches
  auto operator<=>(const Variant&) const = default;
};

// A piece of a unit's work: a graph on one lane, or a wait of the compute lane for an op of the comm lane.
struct Piece {
  cudaGraphExec_t graph = nullptr;  // null: a wait
  int32_t comm_op = -1;             // whose graph it is, or which is waited for; -1: a graph of the compute lane
};

struct Recorded {
  std::vector<Piece> pieces;
  std::map<std::string, int64_t> sent;  // bytes, by axes, each time it runs
};

struct BoundRegion {
  std::vector<SlottedOperand> slotted;
  int first_microbatch, last_microbatch;
  int slot_period = 1;
  bool capturable = true;
};

// Key of the work of a unit: of each part its region, -1 where there is none, and its variant.
struct PartKey {
  int32_t region = -1;
  Variant variant;
  auto operator<=>(const PartKey&) const = default;
};
using UnitKey = std::array<PartKey, kMostParts>;

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
        walk_(program),
        device_(parts.device),
        rank_(parts.rank),
        wires_(parts.wires),
        addresses_(program, parts.rank, arena.data(), arena.host_data()),
        states_(program, addresses_, arena.checksums()),
        file_(arena.file()),
        host_window_(arena.host_data() ? arena.host_data() + program.host_arena.persistent : nullptr),
        host_team_(parts.host_team),
        stream_(parts.device.stream()),
        exchange_(stream_, kFetchesUnderWay) {
    BUG_IF(arena.bytes() < program.arena_bytes, "arena of {} bytes for a program of {}", arena.bytes(),
           program.arena_bytes);
    BUG_IF(arena.host_bytes() < program.host_arena.all, "{} bytes of the host for a program of {}", arena.host_bytes(),
           program.host_arena.all);
    BUG_IF(arena.nvme_bytes() < program.nvme_arena.all, "a file of {} bytes for a program of {}", arena.nvme_bytes(),
           program.nvme_arena.all);
    check_cuda(cudaStreamCreateWithFlags(&comm_stream_, cudaStreamNonBlocking), "a stream");
    check_cuda(cudaEventCreateWithFlags(&fork_, cudaEventDisableTiming), "an event");
    ops_.reserve(walk_.op_count());
    for (const Region& region : program.regions) {
      regions_.push_back({.slotted = addresses_.slotted(region),
                          .first_microbatch = first_microbatch(program, region),
                          .last_microbatch = last_microbatch(program, region)});
      BoundRegion& bound = regions_.back();
      for (const Op& op : region.ops) {
        ops_.push_back(bind_op(op, program.workspaces[ops_.size()]));
        bound.capturable = bound.capturable && (!ops_.back().prepared || ops_.back().prepared->capturable());
      }
      for (const SlottedOperand& s : bound.slotted) bound.slot_period = std::lcm(bound.slot_period, s.slots);
      most_slots_ = std::max(most_slots_, bound.slot_period);
    }
    if (wires_) wires_->open_groups();
  }

  ~CudaBound() override {
    cudaSetDevice(device_.index());
    cudaStreamSynchronize(stream_);
    if (comm_stream_) cudaStreamSynchronize(comm_stream_);
    for (auto& [key, recorded] : graphs_)
      for (const Piece& piece : recorded.pieces)
        if (piece.graph) cudaGraphExecDestroy(piece.graph);
    for (BoundOp& op : ops_)
      if (op.done) cudaEventDestroy(op.done);
    if (fork_) cudaEventDestroy(fork_);
    if (comm_stream_) cudaStreamDestroy(comm_stream_);
  }

  const Program& program() const override { return program_; }
  bool checks_gemms() const override { return true; }
  int rank() const override { return rank_; }

  void run(std::span<const Action> unit, Trace* trace) override {
    failure_.rethrow();
    device_.use();
    Pass pass{.key = {}, .steps = walk_.steps(unit), .microbatches = {}};
    bool capturable = true;
    for (size_t part = 0; part < unit.size(); ++part) {
      const Action& action = unit[part];
      std::optional<size_t> at = walk_.region_of(action);
      if (!at) continue;
      const BoundRegion& region = regions_[*at];
      if (wires_)
        wires_->transport().rank_status().begin_action(letter_of(action.region), action.chunk, action.microbatch);
      pass.key[part] = {static_cast<int32_t>(*at),
                        {action.microbatch % region.slot_period,
                         action.microbatch == region.first_microbatch ? SumState::fresh : SumState::running,
                         action.microbatch == region.last_microbatch}};
      pass.microbatches[part] = action.microbatch;
      capturable = capturable && region.capturable;
    }
    if (pass.steps.empty()) return;
    begin(pass);
    bool checked = has_checks(pass);
    if (observer())
      run_observed(pass, unit);
    else if (trace)
      run_traced(pass, *trace);
    else if (capturable && !checked)
      replay(pass);
    else
      launch_all(pass);
    if (checked) end_by_found_fault();
  }

  void settle() override {
    failure_.rethrow();
    for (BoundOp& op : ops_) {
      if (op.prepared)
        for (int slot = 0; slot < most_slots_; ++slot) op.prepared->settle(slot);
      wait_for(op);
    }
  }

  void write(const Value& value, std::span<const std::byte> source, int64_t offset, int microbatch) override {
    device_.use();
    if (value.space == MemorySpace::nvme) return settled_file().write(source, file_place(value, source.size(), offset));
    exchange_.send(addresses_.place(value, source.size(), offset, microbatch), source);
  }
  void read(const Value& value, std::span<std::byte> destination, int64_t offset) const override {
    device_.use();
    if (value.space == MemorySpace::nvme)
      return settled_file().read(destination, file_place(value, destination.size(), offset));
    exchange_.receive(destination, addresses_.place(value, destination.size(), offset, 0));
    rethrow();  // nothing is read behind a step that has failed
  }
  void read_all(std::span<const Value* const> values, std::span<std::byte> destination) const override {
    const bool in_memory = std::ranges::none_of(values, [](const Value* value) {
      return value->space == MemorySpace::nvme || value->local_bytes().n % 4 != 0;
    });
    if (!in_memory) return Bound::read_all(values, destination);
    device_.use();
    std::vector<DevicePiece> pieces;
    for (const Value* value : values) {
      const int64_t bytes = value->local_bytes().n;
      pieces.push_back({addresses_.place(*value, static_cast<size_t>(bytes), 0, 0), bytes});
    }
    exchange_.receive_all(destination, pieces);
    rethrow();
  }
  void draw(const Value& value, const DrawnPiece& piece) override {
    device_.use();
    if (value.space == MemorySpace::nvme) return draw_into_file(value, piece);
    fill_drawn(addresses_.place(value, static_cast<size_t>(value.local_bytes().n), 0, 0), value.dtype, piece, stream_);
    check_cuda(cudaGetLastError(), value.path);
  }
  int64_t fetch(const Value& scalar) override { return exchange_.fetch(addresses_.place(scalar, sizeof(float), 0, 0)); }
  float collect(int64_t ticket) override {
    float number = exchange_.collect(ticket);
    rethrow();
    return number;
  }

  void record_checksums() override {
    device_.use();
    BUG_IF(!states_.has_checksums() && !graphs_.empty(), "{} has run without checksums", program_.name);
    states_.record_all(stream_);
  }
  bool has_checksums() const override { return states_.has_checksums(); }
  void verify_checksums() const override {
    if (!states_.has_checksums()) return;
    device_.use();
    check_cuda(cudaStreamSynchronize(comm_stream_), "checksums of states");
    states_.verify_all(stream_);
    check_cuda(cudaStreamSynchronize(stream_), "checksums of states");
    rethrow();
  }

 private:
  // Throws the errors of work that the device has completed: of host ops in between, and of checksum comparisons.
  void rethrow() const {
    failure_.rethrow();
    states_.rethrow(rank_, wires_ ? wires_->transport().here() : "");
  }

  int64_t file_place(const Value& value, size_t bytes, int64_t offset) const {
    return addresses_.place_in_file(value, bytes, offset);
  }

  // The file, when all that has been launched is done to it.
  NvmeFile& settled_file() const {
    check_cuda(cudaStreamSynchronize(comm_stream_), "the file of the nvme space");
    check_cuda(cudaStreamSynchronize(stream_), "the file of the nvme space");
    failure_.rethrow();
    return *file_;
  }

  // By the device, in that part of the host's memory which values of the file pass through in a step.
  void draw_into_file(const Value& value, const DrawnPiece& piece) {
    const auto bytes = static_cast<size_t>(value.local_bytes().n);
    BUG_IF(program_.host_arena.persistent + value.local_bytes().n > program_.host_arena.all,
           "{} has no room on the host", value.path);
    const std::span<std::byte> window(host_window_, bytes);
    NvmeFile& file = settled_file();
    file.read(window, file_place(value, bytes, 0));
    fill_drawn(host_window_, value.dtype, piece, stream_);
    check_cuda(cudaGetLastError(), value.path);
    settled_file().write(window, file_place(value, bytes, 0));
  }

  BoundOp bind_op(const Op& op, int32_t workspace) {
    const bool host = space_of(program_, op) == MemorySpace::host;
    BoundOp bound{&op,
                  host ? nullptr : &cuda_kernel(*op.def),
                  addresses_.tensors(op.inputs),
                  addresses_.tensors(op.outputs),
                  addresses_.workspace(workspace),
                  nullptr,
                  local_cost(program_, op)};
    if (host) {
      BUG_IF(!host_team_, "{} runs on the host, which has no threads for it", op.path);
      // The vectors keep their elements where they are when the op moves.
      KernelCall call{bound.in, bound.out, op.attrs, bound.workspace, *host_team_};
      const CpuKernel& kernel = cpu_kernel(*op.def);
      std::unique_ptr<PreparedKernel> prepared;
      if (kernel.prepare)
        prepared = kernel.prepare({op, program_, rank_, addresses_.coordinate(), /*wire=*/nullptr, file_});
      bound.on_host.reset(new HostRun{kernel, call, std::move(prepared), failure_});
    } else if (bound.kernel->prepare)
      bound.prepared =
          bound.kernel->prepare({op, program_, rank_, addresses_.coordinate(), bound.in, bound.out, device_, wires_});
    bound.name = drawn_name_of(op);
    if (!host && cuda_kernel_needs().can_check(*op.def)) products_.push_back(ops_.size());
    if (!host && op.attrs.has("checked"))
      bound.check_scratch =
          bound.workspace + cuda_scratch(op, types_of(bound.in), types_of(bound.out), device_.determinism()).check_at;
    if (wires_) bound.place = wires_->transport().rank_status().keep(place_of(op));
    bound.on_comm_lane = on_comm_lane(op) && (!bound.prepared || bound.prepared->capturable());
    if (bound.on_comm_lane) check_cuda(cudaEventCreateWithFlags(&bound.done, cudaEventDisableTiming), "an event");
    return bound;
  }

  // One run of a unit.
  struct Pass {
    UnitKey key;
    std::span<const WalkStep> steps;
    std::array<int, kMostParts> microbatches;  // of each part
    const Variant& variant(const WalkStep& step) const { return key[static_cast<size_t>(step.part)].variant; }
    int microbatch(const WalkStep& step) const { return microbatches[static_cast<size_t>(step.part)]; }
  };

  BoundOp& op_of(const WalkStep& step) { return ops_[static_cast<size_t>(step.op)]; }

  // The messages that must have gone before the unit's operands are made again: all steps up to the first that runs.
  void begin(Pass& pass) {
    while (!pass.steps.empty()) {
      const WalkStep& step = pass.steps.front();
      if (step.kind == WalkStep::Kind::settle)
        settle();
      else if (step.kind == WalkStep::Kind::reclaim)
        op_of(step).prepared->settle(pass.microbatch(step));
      else
        break;
      note(step);
      pass.steps = pass.steps.subspan(1);
    }
  }

  // The compute lane goes on when the latest run of an op of the comm lane has ended.
  void wait_for(BoundOp& op) {
    if (op.ran) check_cuda(cudaStreamWaitEvent(stream_, op.done), op.op->path);
  }

  // Check or bit flip that this step requests for the op's GEMMs; empty: neither.
  std::optional<DeviceGemmCheck> check_of(int32_t number) {
    if (checks().gemms <= 0 && !checks().flips_gemm) return {};
    const BoundOp& op = ops_[static_cast<size_t>(number)];
    bool verifies = op.check_scratch && checks().checks_gemm(op.name);
    bool flips = checks().flips_gemm && !products_.empty() &&
                 products_[checks().random("flip").below(0, products_.size())] == static_cast<size_t>(number);
    if (!verifies && !flips) return {};
    if (!mailbox_) mailbox_.emplace();
    return DeviceGemmCheck{.op = number,
                           .signs = checks().random("gemm_signs").bits(op.name),
                           .scratch = op.check_scratch,
                           .verifies = verifies,
                           .flips = flips ? 1 : 0,
                           .fault = mailbox_->fault()};
  }

  // Such units are launched op by op: which ops are checked changes from step to step, and a graph does not.
  bool has_checks(const Pass& pass) {
    return std::any_of(pass.steps.begin(), pass.steps.end(), [&](const WalkStep& step) {
      return step.kind == WalkStep::Kind::start && check_of(step.op).has_value();
    });
  }

  // Before anything uses what was computed for an update.
  void end_by_found_fault() {
    check_cuda(cudaStreamSynchronize(stream_), "checks of GEMMs");
    const DeviceGemmFault& found = *mailbox_->fault();
    if (found.found == 0) return;
    end_by_fault({found.row, found.column, found.got, found.expected, found.allowed},
                 *ops_[static_cast<size_t>(found.op)].op, rank_, wires_ ? wires_->transport().here() : "");
  }

  CudaCall call_of(const WalkStep& step, const Pass& pass, cudaStream_t stream) {
    const BoundOp& op = op_of(step);
    SumState sum = starts_sum(*op.op) ? pass.variant(step).sum : SumState::running;
    return {op.in, op.out, op.op->attrs, op.workspace, device_, stream, pass.microbatch(step), sum};
  }

  // How many of the steps from `at` on start ops that go out in one launch: neighbours of one kind and region, where
  // its kernel can.
  size_t done_together(const Pass& pass, size_t at) {
    const CudaKernel* kernel = op_of(pass.steps[at]).kernel;
    size_t count = 1;
    while (kernel && kernel->launch_all && at + count < pass.steps.size() &&
           pass.steps[at + count].kind == WalkStep::Kind::start && pass.steps[at + count].part == pass.steps[at].part &&
           op_of(pass.steps[at + count]).kernel == kernel)
      ++count;
    return count;
  }

  // On `stream`, which is that of its lane.
  void launch(const Pass& pass, size_t at, size_t count, cudaStream_t stream) {
    BoundOp& op = op_of(pass.steps[at]);
    if (op.place) wires_->transport().rank_status().arrive(op.place);
    states_.verify_before(pass.steps.subspan(at, count), stream);
    if (op.on_host) {
      check_cuda(cudaLaunchHostFunc(stream, HostRun::run, op.on_host.get()), op.op->path);
    } else if (op.kernel->launch_all) {
      std::vector<CudaCall> calls;
      for (size_t i = at; i < at + count; ++i) calls.push_back(call_of(pass.steps[i], pass, stream));
      if (states_.summed_launch(pass.steps[at]))
        states_.launch_summed(pass.steps.subspan(at, count), calls);
      else
        op.kernel->launch_all(calls);
    } else {
      CudaCall call = call_of(pass.steps[at], pass, stream);
      std::optional<DeviceGemmCheck> check = check_of(pass.steps[at].op);
      if (check) call.check = &*check;
      op.prepared ? op.prepared->launch(call) : op.kernel->launch(call);
    }
    states_.record_after(pass.steps.subspan(at, count), stream);
    check_cuda(cudaGetLastError(), op.op->path);
  }

  // An op of the comm lane starts when what stands before it on the compute lane has ended.
  void fork(const BoundOp& op) {
    check_cuda(cudaEventRecord(fork_, stream_), op.op->path);
    check_cuda(cudaStreamWaitEvent(comm_stream_, fork_), op.op->path);
  }
  void mark_done(BoundOp& op) {
    check_cuda(cudaEventRecord(op.done, comm_stream_), op.op->path);
    op.ran = true;
  }

  void launch_all(const Pass& pass) {
    move_to_slots(pass);
    for (size_t at = 0; at < pass.steps.size();) {
      BoundOp& op = op_of(pass.steps[at]);
      size_t count = 1;
      if (pass.steps[at].kind == WalkStep::Kind::wait) {
        wait_for(op);
      } else if (op.on_comm_lane) {
        fork(op);
        launch(pass, at, 1, comm_stream_);
        mark_done(op);
      } else {
        count = done_together(pass, at);
        launch(pass, at, count, stream_);
      }
      for (size_t i = at; i < at + count; ++i) note(pass.steps[i]);
      at += count;
    }
  }

  // A unit without ops of the comm lane is one graph. Where there are some, each is a graph of its own on its stream,
  // and so is what the compute lane does between them: streams and events then order the lanes as without graphs, and
  // the comm lane may still be at work when the next region begins.
  void replay(const Pass& pass) {
    auto at = graphs_.find(pass.key);
    if (at == graphs_.end())
      at = graphs_.emplace(pass.key, record(pass)).first;
    else if (wires_)
      wires_->count_again(at->second.sent);
    for (const Piece& piece : at->second.pieces) {
      if (piece.comm_op < 0) {
        check_cuda(cudaGraphLaunch(piece.graph, stream_), "replaying a region");
        continue;
      }
      BoundOp& op = ops_[static_cast<size_t>(piece.comm_op)];
      if (!piece.graph) {
        wait_for(op);
        continue;
      }
      fork(op);
      check_cuda(cudaGraphLaunch(piece.graph, comm_stream_), op.op->path);
      mark_done(op);
    }
    for (const WalkStep& step : pass.steps) note(step);
  }

  Recorded record(const Pass& pass) {
    std::map<std::string, int64_t> before = wires_ ? wires_->bytes_sent() : std::map<std::string, int64_t>();
    Recorded recorded;
    move_to_slots(pass);
    std::optional<Capture> compute;
    auto close = [&] {
      if (compute) recorded.pieces.push_back({.graph = compute->finish()});
      compute.reset();
    };
    for (size_t at = 0; at < pass.steps.size();) {
      const WalkStep& step = pass.steps[at];
      BoundOp& op = op_of(step);
      size_t count = 1;
      if (step.kind == WalkStep::Kind::wait) {
        if (op.on_comm_lane) {
          close();
          recorded.pieces.push_back({.comm_op = step.op});
        }
      } else if (op.on_comm_lane) {
        close();
        Capture capture(comm_stream_);
        launch(pass, at, 1, comm_stream_);
        recorded.pieces.push_back({.graph = capture.finish(), .comm_op = step.op});
      } else {
        if (!compute) compute.emplace(stream_);
        count = done_together(pass, at);
        launch(pass, at, count, stream_);
      }
      at += count;
    }
    close();
    if (wires_) recorded.sent = wires_->bytes_sent();
    for (const auto& [axes, bytes] : before) recorded.sent[axes] -= bytes;
    return recorded;
  }

  void move_to_slots(const Pass& pass) {
    for (const PartKey& part : pass.key) {
      if (part.region < 0) continue;
      auto region = static_cast<size_t>(part.region);
      for (const SlottedOperand& s : regions_[region].slotted) {
        BoundOp& op = ops_[static_cast<size_t>(walk_.first_op(region)) + s.op];
        (s.side == SlottedOperand::Side::output ? op.out : op.in)[s.operand].data = s.at(part.variant.slot);
      }
    }
  }

  // Launched one by one, each waited for and its outputs copied to the host. The lanes are one then.
  void run_observed(const Pass& pass, std::span<const Action> unit) {
    move_to_slots(pass);
    for (size_t at = 0; at < pass.steps.size();) {
      size_t count = 1;
      if (pass.steps[at].kind == WalkStep::Kind::start) {
        count = done_together(pass, at);
        launch(pass, at, count, stream_);
        for (size_t i = at; i < at + count; ++i)
          show(op_of(pass.steps[i]), unit[static_cast<size_t>(pass.steps[i].part)]);
      }
      for (size_t i = at; i < at + count; ++i) note(pass.steps[i]);
      at += count;
    }
  }

  void show(const BoundOp& op, const Action& action) {
    std::vector<Tensor> outputs = op.out;
    std::vector<std::vector<std::byte>> copies;
    if (!outputs.empty() && program_[op.op->outputs[0]].space == MemorySpace::nvme) return;  // seen where it was made
    for (Tensor& output : outputs) {
      std::vector<std::byte>& copy = copies.emplace_back(static_cast<size_t>(output.count() * size_of(output.dtype)));
      if (!copy.empty()) exchange_.receive(copy, output.data);
      output.data = copy.data();
    }
    observer()->after({*op.op, action, outputs});
  }

  // Launched one by one, with an event before and after each. The lanes are one then: what is measured is the op alone.
  void run_traced(const Pass& pass, Trace& trace) {
    struct Timed {
      size_t at, count;
      cudaEvent_t end;
    };
    auto mark = [&] {
      cudaEvent_t event = nullptr;
      check_cuda(cudaEventCreate(&event), "an event");
      check_cuda(cudaEventRecord(event, stream_), "tracing");
      return event;
    };
    move_to_slots(pass);
    cudaEvent_t begin = mark();
    std::vector<Timed> launches;
    for (size_t at = 0; at < pass.steps.size();) {
      size_t count = 1;
      if (pass.steps[at].kind == WalkStep::Kind::start) {
        count = done_together(pass, at);
        launch(pass, at, count, stream_);
        launches.push_back({at, count, mark()});
      }
      for (size_t i = at; i < at + count; ++i) note(pass.steps[i]);
      at += count;
    }
    check_cuda(cudaStreamSynchronize(stream_), "tracing");
    cudaEvent_t before = begin;
    for (const Timed& timed : launches) {
      add_event(pass.steps.subspan(timed.at, timed.count), before, timed.end, trace);
      before = timed.end;
    }
    cudaEventDestroy(begin);
    for (const Timed& timed : launches) cudaEventDestroy(timed.end);
  }

  void add_event(std::span<const WalkStep> steps, cudaEvent_t begin, cudaEvent_t end, Trace& trace) {
    float ms = 0;
    check_cuda(cudaEventElapsedTime(&ms, begin, end), "tracing");
    const BoundOp& op = op_of(steps.front());
    Event event{op.op->path, std::string(op.op->def->name), traced_s_, traced_s_ + ms / 1e3};
    if (steps.size() > 1) event.path += fmt::format(" and {} more", steps.size() - 1);
    for (const WalkStep& step : steps) {
      event.flops += op_of(step).cost.flops.n;
      event.bytes += op_of(step).cost.read.n + op_of(step).cost.written.n;
    }
    event.lane = name_of(op.op->lane);
    event.rank = rank_;
    traced_s_ = event.end_s;
    trace.push_back(std::move(event));
  }

  const Program& program_;
  Walk walk_;
  CudaDevice& device_;
  int rank_;
  CudaWires* wires_;
  Addresses addresses_;
  DeviceStateCheck states_;
  NvmeFile* file_;          // null where the Program keeps nothing in one
  std::byte* host_window_;  // of the host's arena, behind what it keeps
  HostFailure failure_;
  ThreadTeam* host_team_;
  cudaStream_t stream_, comm_stream_ = nullptr;
  cudaEvent_t fork_ = nullptr;
  HostExchange exchange_;
  std::vector<BoundOp> ops_;      // by number
  std::vector<size_t> products_;  // the ops that make matrix products
  std::optional<FaultMailbox> mailbox_;
  std::vector<BoundRegion> regions_;
  std::map<UnitKey, Recorded> graphs_;
  int most_slots_ = 1;
  double traced_s_ = 0;
};

}  // namespace

bool has_ops_of_host(const Program& program) {
  for (const Region& region : program.regions)
    for (const Op& op : region.ops)
      if (space_of(program, op) == MemorySpace::host) return true;
  return false;
}

std::unique_ptr<Bound> bind_on_cuda(const Program& program, CudaArena& arena, const CudaRankParts& parts) {
  return std::make_unique<CudaBound>(program, arena, parts);
}

}  // namespace sextant
