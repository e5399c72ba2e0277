#include "comm/nccl/nccl_library.h"

#include <dlfcn.h>

#include "base/error.h"

namespace sextant {

namespace {

constexpr const char* kFile = "libnccl.so.2";

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (!function) throw RunError("NCCL", fmt::format("{} has no {}", kFile, name), "install NCCL 2.18 or newer");
}

}  // namespace

NcclLibrary load_nccl() {
  void* library = ::dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw RunError(
        "NCCL",
        fmt::format("ranks on GPUs of their own talk through {}, which cannot be loaded: {}", kFile, ::dlerror()),
        "install NCCL 2.18 or newer, or name its folder in LD_LIBRARY_PATH");
  NcclLibrary nccl{};
  find(library, "ncclGetVersion", nccl.get_version);
  find(library, "ncclGetUniqueId", nccl.get_unique_id);
  find(library, "ncclCommInitRank", nccl.comm_init_rank);
  find(library, "ncclCommDestroy", nccl.comm_destroy);
  find(library, "ncclCommAbort", nccl.comm_abort);
  find(library, "ncclGetErrorString", nccl.get_error_string);
  find(library, "ncclGroupStart", nccl.group_start);
  find(library, "ncclGroupEnd", nccl.group_end);
  find(library, "ncclAllReduce", nccl.all_reduce);
  find(library, "ncclAllGather", nccl.all_gather);
  find(library, "ncclReduceScatter", nccl.reduce_scatter);
  find(library, "ncclSend", nccl.send);
  find(library, "ncclRecv", nccl.receive);
  int version = 0;
  nccl.check(nccl.get_version(&version), "asking for the version");
  if (version < kOldestNccl)
    throw RunError("NCCL",
                   fmt::format("{} is of version {}.{}.{}", kFile, version / 10000, version / 100 % 100, version % 100),
                   "install NCCL 2.18 or newer");
  return nccl;
}

void NcclLibrary::check(ncclResult_t result, std::string_view what) const {
  if (result != ncclSuccess)
    throw RunError("NCCL", fmt::format("{}: {}", what, get_error_string(result)),
                   "NCCL_DEBUG=WARN in the environment gives details");
}

}  // namespace sextant
