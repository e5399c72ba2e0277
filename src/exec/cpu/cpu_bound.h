// A Program at its addresses in host memory: what a CPU executor's bind makes.
#pragma once

#include <cstdint>
#include <memory>

#include "base/threads.h"
#include "exec/cpu/lane_thread.h"
#include "exec/cpu/wire.h"
#include "exec/executor.h"

namespace sextant {

// Pages of this process. They are zero, page-aligned, and cost nothing until touched.
class HostArena final : public Arena {
 public:
  explicit HostArena(int64_t bytes, int64_t host_bytes = 0);  // RunError when there is too little memory
  ~HostArena() override;
  HostArena(const HostArena&) = delete;
  HostArena& operator=(const HostArena&) = delete;

  int64_t bytes() const override { return bytes_; }
  int64_t host_bytes() const override { return host_bytes_; }
  std::byte* data() const { return data_; }
  std::byte* host_data() const { return host_data_; }

 private:
  std::byte *data_ = nullptr, *host_data_ = nullptr;
  int64_t bytes_, host_bytes_;
};

// What the bound Programs of a rank share: its threads, and its ways to the other ranks.
struct RankParts {
  ThreadTeam& team;
  int rank = 0;
  Wire* wire = nullptr;       // of the compute lane; null when there are no other ranks
  Wire* comm_wire = nullptr;  // of the comm lane
  LaneThread* comm_lane = nullptr;
};

// All must outlive the result.
std::unique_ptr<Bound> bind_on_cpu(const Program& program, HostArena& arena, const RankParts& parts);

// Runs an op that a bound Program has posted on the comm lane.
void run_posted_op(void* op, int microbatch, ThreadTeam& team, RankStatus& rank_status);

}  // namespace sextant
