// The hashing of a checkpoint's blocks, shared among the ranks of a run.
#pragma once

#include "base/threads.h"
#include "ckpt/manifest.h"
#include "comm/host_group.h"

namespace sextant {

// Rank r hashes blocks r, r + size, …, on the threads of `team` where one is given, and every rank gets all hashes.
// All ranks of the group call it alike; group and team must outlive the result.
ShareBlocks share_among(HostGroup& group, ThreadTeam* team = nullptr);

}  // namespace sextant
