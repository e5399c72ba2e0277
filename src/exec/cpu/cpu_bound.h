// A Program at its addresses in host memory: what a CPU executor's bind makes.
#pragma once

#include <cstdint>
#include <memory>

#include "base/threads.h"
#include "exec/cpu/lane_thread.h"
#include "exec/cpu/wire.h"
#include "exec/executor.h"
#include "exec/host_pages.h"
#include "exec/nvme_file.h"
#include "exec/state_checksums.h"

namespace sextant {

// Pages of this process. They are zero, page-aligned, and cost nothing until touched.
class HostArena final : public Arena {
 public:
  // RunError when there is too little memory; the errors of NvmeFile.
  explicit HostArena(int64_t bytes, int64_t host_bytes = 0, const FileSpace& file = {});

  int64_t bytes() const override { return pages_.bytes(); }
  int64_t host_bytes() const override { return host_pages_.bytes(); }
  int64_t nvme_bytes() const override { return file_ ? file_->bytes() : 0; }
  std::byte* data() const { return pages_.data(); }
  std::byte* host_data() const { return host_pages_.data(); }
  NvmeFile* file() const { return file_.get(); }  // null where nothing is kept in one
  StateChecksums& checksums() { return checksums_; }

 private:
  HostPages pages_, host_pages_;
  std::unique_ptr<NvmeFile> file_;
  StateChecksums checksums_;
};

// Resources that the bound Programs of a rank share: its threads, and its connections to the other ranks.
struct RankParts {
  ThreadTeam& team;
  int rank = 0;
  Wire* wire = nullptr;       // of the compute lane; null when there are no other ranks
  Wire* comm_wire = nullptr;  // of the comm lane
  LaneThread* comm_lane = nullptr;
};

// All must outlive the result.
std::unique_ptr<Bound> bind_on_cpu(const Program& program, HostArena& arena, const RankParts& parts);

// Runs an op that a bound Program has posted on the comm lane. The status is null where none is kept.
void run_posted_op(void* op, int microbatch, ThreadTeam& team, RankStatus* rank_status);

}  // namespace sextant
