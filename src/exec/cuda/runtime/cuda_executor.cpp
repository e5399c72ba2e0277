#include "exec/cuda/runtime/cuda_executor.h"

#include "base/error.h"
#include "base/fp8.h"
#include "exec/cpu/cpu_executor.h"
#include "exec/cpu/kernel.h"
#include "exec/cuda/probe/rates.h"
#include "exec/cuda/runtime/check.h"
#include "exec/cuda/runtime/cuda_bound.h"
#include "exec/cuda/runtime/devices.h"
#include "exec/cuda/runtime/kernel.h"
#include "exec/cuda/runtime/time_marks.h"
#include "targets/cuda/cuda_target.h"

namespace sextant {

namespace {

// The driver's context, the libraries' modules and CUDA graphs, beyond what is taken when the executor is made.
constexpr int64_t kOutsideArena = int64_t{1} << 30;

// Products in fp8 are written for Hopper: other devices have other forms of them, or none.
constexpr int kFp8Capability = 9;

// In f64 only sums of gradients (ops/exact_sum.cpp): a model in f64 has weights of that type.
bool is_supported(const Value& value) {
  DType dtype = value.dtype;
  if (dtype == DType::f64) return value.kind == ValueKind::gradient || value.kind == ValueKind::activation;
  return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16 || dtype == DType::i32 ||
         dtype == DType::i64 || dtype == DType::u16 || dtype == DType::u8 || is_fp8(dtype);
}

// Everything that stands in the way, at once.
void refuse_unsupported(const Program& program) {
  std::vector<Complaint> missing;
  for (const Region& region : program.regions) {
    for (const Op& op : region.ops) {
      if (space_of(program, op) == MemorySpace::host) {
        if (!cpu_kernel(*op.def).run)
          missing.push_back({.place = op.path, .got = fmt::format("{} does not run on the host", op.def->name)});
        continue;
      }
      const CudaKernel& kernel = cuda_kernel(*op.def);
      bool together = cuda_kernel_needs().grouping(*op.def) == Grouping::together;
      BUG_IF((kernel.launch_all != nullptr) != together, "targets/cuda groups {} otherwise than its kernel",
             op.def->name);
      if (!kernel.launch && !kernel.prepare && !kernel.launch_all)
        missing.push_back(
            {.place = op.path, .got = fmt::format("the cuda executor has no kernel for {}", op.def->name)});
      for (const auto* ids : {&op.inputs, &op.outputs})
        for (ValueId id : *ids)
          if (!is_supported(program[id]))
            missing.push_back(
                {.place = program[id].path,
                 .got = fmt::format("the cuda executor does not compute in {}", name_of(program[id].dtype))});
    }
  }
  if (!missing.empty()) throw UserError(std::move(missing));
}

int device_for(const CudaOptions& options, const RankContext& context) {
  CudaDevices found = cuda_devices();
  int count = static_cast<int>(found.devices.size());
  if (count == 0) throw RunError("cuda", fmt::format("no CUDA device here ({})", found.problem), "use device=cpu");
  if (options.device < 0) return context.rank % count;
  if (options.device >= count) throw RunError("cuda", fmt::format("no device {}: there are {}", options.device, count));
  return options.device;
}

int threads_for(const CudaOptions& options) {
  if (options.host_threads > 0) return options.host_threads;
  auto devices = static_cast<int>(cuda_devices().devices.size());
  return std::max(1, core_count() / std::max(1, devices));
}

class CudaExecutor final : public Executor {
 public:
  CudaExecutor(const CudaOptions& options, const RankContext& context)
      : device_(device_for(options, context), options.determinism,
                context.transport ? Tuning::first_choice : Tuning::timed),
        rank_(context.rank),
        host_threads_(threads_for(options)) {
    if (context.transport)
      wires_ = std::make_unique<CudaWires>(*context.transport, device_, choose_wires(*context.transport, device_));
  }

  Target target() const override {
    Target target = cuda_target(device_.determinism());
    target.fp8 = target.fp8 && device_.capability() / 10 == kFp8Capability;
    return target;
  }
  std::unique_ptr<Arena> allocate(int64_t bytes, int64_t host_bytes, const FileSpace& file) override {
    return std::make_unique<CudaArena>(device_, bytes, host_bytes, file, host_threads_);
  }
  std::unique_ptr<Bound> bind(const Program& program, Arena& arena) override {
    refuse_unsupported(program);
    auto* memory = dynamic_cast<CudaArena*>(&arena);
    BUG_IF(!memory, "an arena of another executor");
    device_.use();
    if (!host_team_ && has_ops_of_host(program)) host_team_ = std::make_unique<ThreadTeam>(host_threads_);
    return bind_on_cuda(program, *memory, {device_, rank_, wires_.get(), host_team_.get()});
  }

  int steps_ahead() const override { return 1; }
  int64_t mark_time() override {
    device_.use();
    return marks_.mark();
  }
  double seconds_between(int64_t earlier, int64_t later) const override {
    return marks_.seconds_between(earlier, later);
  }
  std::optional<Bytes> room() const override {
    device_.use();
    size_t free = 0, total = 0;
    check_cuda(cudaMemGetInfo(&free, &total), "asking for free memory");
    return Bytes{std::max<int64_t>(0, static_cast<int64_t>(free) - kOutsideArena)};
  }
  std::optional<Bytes> host_room() const override { return memory_of_this_machine(); }
  std::optional<DeviceRates> measure_rates() override {
    device_.use();
    return measured_rates(device_);
  }
  std::map<std::string, int64_t> bytes_sent() const override {
    return wires_ ? wires_->bytes_sent() : std::map<std::string, int64_t>();
  }

 private:
  CudaDevice device_;
  TimeMarks marks_{device_.stream(), kMarksKept};
  int rank_;
  int host_threads_;
  std::unique_ptr<ThreadTeam> host_team_;
  std::unique_ptr<CudaWires> wires_;
};

}  // namespace

std::unique_ptr<Executor> make_cuda_executor(const CudaOptions& options, const RankContext& context) {
  return std::make_unique<CudaExecutor>(options, context);
}

}  // namespace sextant
