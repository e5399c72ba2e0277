// NcclLibrary: NVIDIA's collectives, loaded when first needed, so that a program starts on machines that lack them.
// Leaves: a table of its functions, or a RunError that says what is missing.
#pragma once

#include <nccl.h>

#include <string_view>

namespace sextant {

struct NcclLibrary {
  decltype(&ncclGetVersion) get_version;
  decltype(&ncclGetUniqueId) get_unique_id;
  decltype(&ncclCommInitRank) comm_init_rank;
  decltype(&ncclCommDestroy) comm_destroy;
  decltype(&ncclCommAbort) comm_abort;
  decltype(&ncclGetErrorString) get_error_string;
  decltype(&ncclGroupStart) group_start;
  decltype(&ncclGroupEnd) group_end;
  decltype(&ncclAllReduce) all_reduce;
  decltype(&ncclAllGather) all_gather;
  decltype(&ncclReduceScatter) reduce_scatter;
  decltype(&ncclSend) send;
  decltype(&ncclRecv) receive;

  // RunError that says what was asked, unless it went well.
  void check(ncclResult_t result, std::string_view what) const;
};

inline constexpr int kOldestNccl = 21800;  // 2.18, as NCCL_VERSION_CODE counts

// RunError when it cannot be loaded, lacks a function, or is older than kOldestNccl. Once loaded it stays until the
// process ends.
NcclLibrary load_nccl();

}  // namespace sextant
