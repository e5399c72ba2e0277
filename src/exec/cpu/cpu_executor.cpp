#include "exec/cpu/cpu_executor.h"

#include <sys/mman.h>

#include <chrono>
#include <cstring>

#include "base/error.h"
#include "exec/cpu/gemm.h"
#include "exec/cpu/kernel.h"

namespace sextant {

namespace {

class HostArena final : public Arena {
 public:
  explicit HostArena(int64_t bytes) : bytes_(bytes) {
    if (bytes == 0) return;
    // Anonymous pages are zero and page-aligned, and untouched ones cost nothing.
    void* at = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
      throw RunError("memory", fmt::format("cannot allocate {} for the arena", human(Bytes{bytes})),
                     "use a smaller batch.microbatch or batch.seq, or train.recompute = \"full\"");
    data_ = static_cast<std::byte*>(at);
    ::madvise(at, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  }
  ~HostArena() override {
    if (data_) ::munmap(data_, static_cast<size_t>(bytes_));
  }
  HostArena(const HostArena&) = delete;
  HostArena& operator=(const HostArena&) = delete;

  int64_t bytes() const override { return bytes_; }
  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  int64_t bytes_;
};

struct BoundOp {
  const Op* op;
  const CpuKernel* kernel;
  std::vector<Tensor> in;
  std::vector<Tensor> out;
  std::byte* workspace;
};

struct BoundRegion {
  RegionKind kind;
  int chunk;
  std::vector<BoundOp> ops;
};

class CpuBound final : public Bound {
 public:
  CpuBound(const Program& program, HostArena& arena, ThreadTeam& team) : program_(program), arena_(arena), team_(team) {
    BUG_IF(arena.bytes() < program.arena_bytes, "arena of {} bytes for a program of {}", arena.bytes(),
           program.arena_bytes);
    size_t op_index = 0;
    for (const Region& region : program.regions) {
      BoundRegion bound{region.kind, region.chunk, {}};
      for (const Op& op : region.ops) {
        int32_t workspace = program.workspaces[op_index++];
        bound.ops.push_back({&op, &cpu_kernel(*op.def), tensors(op.inputs), tensors(op.outputs),
                             workspace < 0 ? nullptr : at(program.buffers[static_cast<size_t>(workspace)].offset)});
      }
      regions_.push_back(std::move(bound));
    }
  }

  const Program& program() const override { return program_; }

  void run(const Action& action, Trace* trace) override {
    for (const BoundRegion& region : regions_) {
      if (region.kind != action.region || region.chunk != action.chunk) continue;
      for (const BoundOp& op : region.ops) trace ? run_traced(op, *trace) : run_op(op);
    }
  }

  void write(const Value& value, std::span<const std::byte> source, int64_t offset) override {
    std::memcpy(place(value, source.size(), offset), source.data(), source.size());
  }
  void read(const Value& value, std::span<std::byte> destination, int64_t offset) const override {
    std::memcpy(destination.data(), place(value, destination.size(), offset), destination.size());
  }

 private:
  std::byte* at(int64_t offset) const { return arena_.data() + offset; }

  std::byte* place(const Value& value, size_t bytes, int64_t offset) const {
    BUG_IF(value.buffer < 0, "{} has no buffer", value.path);
    BUG_IF(offset < 0 || offset + static_cast<int64_t>(bytes) > value.local_bytes().n, "{}: {} bytes at {} of {}",
           value.path, bytes, offset, value.local_bytes().n);
    return at(program_.buffers[static_cast<size_t>(value.buffer)].offset + offset);
  }

  std::vector<Tensor> tensors(const std::vector<ValueId>& ids) const {
    std::vector<Tensor> out;
    for (ValueId id : ids) {
      const Value& value = program_[id];
      out.push_back({at(program_.buffers[static_cast<size_t>(value.buffer)].offset), value.dtype, value.local});
    }
    return out;
  }

  void run_op(const BoundOp& op) { op.kernel->run({op.in, op.out, op.op->attrs, op.workspace, team_}); }

  void run_traced(const BoundOp& op, Trace& trace) {
    using Clock = std::chrono::steady_clock;
    auto seconds = [](Clock::time_point t) { return std::chrono::duration<double>(t.time_since_epoch()).count(); };
    double start = seconds(Clock::now());
    run_op(op);
    trace.push_back({op.op->path, std::string(op.op->def->name), start, seconds(Clock::now())});
  }

  const Program& program_;
  HostArena& arena_;
  ThreadTeam& team_;
  std::vector<BoundRegion> regions_;
};

void refuse_missing_kernels(const Program& program) {
  std::vector<Complaint> missing;
  for (const Region& region : program.regions)
    for (const Op& op : region.ops)
      if (!cpu_kernel(*op.def).run)
        missing.push_back({.place = op.path, .got = fmt::format("the cpu executor has no kernel for {}", op.def->name)});
  if (!missing.empty()) throw UserError(std::move(missing));
}

class CpuExecutor final : public Executor {
 public:
  explicit CpuExecutor(int threads) : team_(threads) { cpu::use_single_threaded_blas(); }

  Target target() const override { return cpu_target(team_.size()); }
  std::unique_ptr<Arena> allocate(int64_t bytes) override { return std::make_unique<HostArena>(bytes); }
  std::unique_ptr<Bound> bind(const Program& program, Arena& arena) override {
    refuse_missing_kernels(program);
    auto* host = dynamic_cast<HostArena*>(&arena);
    BUG_IF(!host, "an arena of another executor");
    return std::make_unique<CpuBound>(program, *host, team_);
  }

 private:
  ThreadTeam team_;
};

std::vector<Tensor> tensors_of(const LocalTypes& types) {
  std::vector<Tensor> out;
  for (const LocalType& t : types) out.push_back({nullptr, t.dtype, t.shape});
  return out;
}

}  // namespace

std::unique_ptr<Executor> make_cpu_executor(int threads) { return std::make_unique<CpuExecutor>(threads); }

Target cpu_target(int threads) {
  int team = threads > 0 ? threads : core_count();
  return {.name = "cpu", .threads = team, .alignment = 64,
          .workspace = [team](const Op& op, const LocalTypes& in, const LocalTypes& out) {
            const CpuKernel& kernel = cpu_kernel(*op.def);
            if (!kernel.workspace) return Bytes{0};
            return kernel.workspace({op.attrs, tensors_of(in), tensors_of(out), team});
          }};
}

}  // namespace sextant
