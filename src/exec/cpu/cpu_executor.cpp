#include "exec/cpu/cpu_executor.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>

#include "base/error.h"
#include "exec/cpu/cpu_bound.h"
#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/gemm.h"
#include "ir/lane.h"
#include "targets/cpu/cpu_target.h"

namespace sextant {

namespace {

void refuse_missing_kernels(const Program& program) {
  std::vector<Complaint> missing;
  for (const Region& region : program.regions)
    for (const Op& op : region.ops)
      if (!cpu_kernel(*op.def).run && !cpu_kernel(*op.def).prepare)
        missing.push_back(
            {.place = op.path, .got = fmt::format("the cpu executor has no kernel for {}", op.def->name)});
  if (!missing.empty()) throw UserError(std::move(missing));
}

class CpuExecutor final : public Executor {
 public:
  CpuExecutor(int threads, const RankContext& context) : team_(threads), rank_(context.rank) {
    cpu::use_single_threaded_blas();
    if (!context.transport) return;
    auto wire = [&](int tag) {
      return Wire{.channel = {.transport = *context.transport, .tag = tag},
                  .payload_check = PayloadCheck(context.transport->size())};
    };
    wire_.emplace(wire(kCollectiveTag));
    comm_wire_.emplace(wire(kCommLaneTag));
  }

  Target target() const override { return cpu_target(team_.size()); }
  std::optional<Bytes> room() const override { return memory_of_this_machine(); }
  std::unique_ptr<Arena> allocate(int64_t bytes, int64_t host_bytes, const FileSpace& file) override {
    return std::make_unique<HostArena>(bytes, host_bytes, file);
  }
  std::unique_ptr<Bound> bind(const Program& program, Arena& arena) override {
    refuse_missing_kernels(program);
    auto* host = dynamic_cast<HostArena*>(&arena);
    BUG_IF(!host, "an arena of another executor");
    // A rank alone has messages to nobody, and copies of memory take the cores that compute; a disk works beside them.
    if (!lane_ && count_comm_ops(program) > 0 && (wire_ || host->file()))
      lane_ = std::make_unique<LaneThread>(kLaneCapacity, [this](void* op, int microbatch) {
        run_posted_op(op, microbatch, lane_team_, comm_wire_ ? &comm_wire_->channel.transport.rank_status() : nullptr);
      });
    return bind_on_cpu(program, *host,
                       {team_, rank_, wire_ ? &*wire_ : nullptr, comm_wire_ ? &*comm_wire_ : nullptr, lane_.get()});
  }

  std::map<std::string, int64_t> bytes_sent() const override {
    std::map<std::string, int64_t> bytes;
    for (const std::optional<Wire>* wire : {&wire_, &comm_wire_})
      if (*wire)
        for (const auto& [axes, sent] : (*wire)->bytes_sent) bytes[axes] += sent;
    return bytes;
  }

 private:
  static constexpr size_t kLaneCapacity = 4096;

  static size_t count_comm_ops(const Program& program) {
    size_t count = 0;
    for (const Region& region : program.regions)
      count += static_cast<size_t>(std::count_if(region.ops.begin(), region.ops.end(), on_comm_lane));
    BUG_IF(count > kLaneCapacity, "{} ops on the comm lane", count);
    return count;
  }

  ThreadTeam team_;
  ThreadTeam lane_team_{1};  // the compute lane owns the cores
  int rank_;
  std::optional<Wire> wire_, comm_wire_;
  std::unique_ptr<LaneThread> lane_;  // last: it ends before what it works with
};

}  // namespace

// How much of it others use changes from moment to moment.
Bytes memory_of_this_machine() {
  int64_t bytes = int64_t{::sysconf(_SC_PHYS_PAGES)} * int64_t{::sysconf(_SC_PAGE_SIZE)};
  // "max" where there is no limit, and no such file outside of containers.
  if (int64_t limit = 0; std::ifstream("/sys/fs/cgroup/memory.max") >> limit && limit > 0)
    bytes = std::min(bytes, limit);
  return {bytes};
}

std::unique_ptr<Executor> make_cpu_executor(int threads, const RankContext& context) {
  return std::make_unique<CpuExecutor>(threads, context);
}

}  // namespace sextant
