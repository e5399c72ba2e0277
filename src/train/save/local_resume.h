// Whether a run can go on from local checkpoints: the newest step of which every rank's state is somewhere on the hosts
// of this start, whole. A rank whose host has none gets it from another host.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "comm/host_group.h"
#include "run/programs.h"
#include "train/save/local_copy.h"
#include "train/save/run_checkpoint.h"

namespace sextant {

struct LocalPoint {
  int64_t step = 0;
  RunState state;
  std::vector<LocalCopy> copies;  // by rank; of the ranks of other processes empty
};

struct LocalSearch {
  std::filesystem::path folder;  // the same on every process
  const RunPrograms& programs;
  int64_t oldest = 1;    // steps before this are not wanted: the durable checkpoint is newer
  Transport* transport;  // of this process, where it is one rank of several; null: all ranks are threads of it
  std::function<void(std::string_view line)> say;
};

// Called by all processes. What is damaged, or of another mesh, is said and left out.
std::optional<LocalPoint> find_local_point(const LocalSearch& search, HostGroup& processes);

}  // namespace sextant
