// NcclGroups: the groups of ranks that talk on their GPUs, one communicator each. Opening one is a collective call of
// all its ranks, so groups are asked for first (want) and opened together (open_wanted), every rank in the same order
// of all groups there are: then the ranks that wait for each other never wait in a circle.
//
// Transfers only put work on a stream. Each rank of a group must make the same ones in the same order, and groups of
// different tags may be under way side by side. All pointers are to device memory; sizes are in elements of `dtype`, or
// in bytes.
#pragma once

#include <cuda_runtime.h>
#include <cstdint>

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "comm/collectives.h"

struct ncclComm;

namespace sextant {

struct NcclLibrary;

struct DeviceSum {
  const void* from = nullptr;
  void* to = nullptr;
  int64_t count = 0;  // of what `to` takes
  DType dtype = DType::f32;
  Reduction reduction = Reduction::sum;  // of all_reduce
};

class NcclGroup {
 public:
  NcclGroup(const NcclLibrary& nccl, Group group);
  ~NcclGroup();  // while an exception is handled, transfers under way are abandoned
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  const Group& group() const { return group_; }

  // to = Σ over ranks of from, or the largest. from == to is allowed.
  void all_reduce(const DeviceSum& sum, cudaStream_t stream);
  // Several all-reduces as one.
  void all_reduce(std::span<const DeviceSum> sums, cudaStream_t stream);
  // from: group().size() parts of `count`; to: the sum of everyone's own part.
  void reduce_scatter(const DeviceSum& sum, cudaStream_t stream);
  // whole: size() parts of `bytes`, one behind the other.
  void all_gather(const void* own, void* whole, int64_t bytes, cudaStream_t stream);
  // Part i of `parts` goes to member i; part i of `received` comes from it.
  void all_to_all(const void* parts, void* received, int64_t part_bytes, cudaStream_t stream);
  // `to` and `from` are indices into the group.
  void send(const void* data, int64_t bytes, int to, cudaStream_t stream);
  void receive(void* data, int64_t bytes, int from, cudaStream_t stream);
  // `out` goes to the next member, `in` comes from the one before.
  void shift(const void* out, void* in, int64_t bytes, cudaStream_t stream);

 private:
  friend class NcclGroups;
  void open(Transport& transport);    // called by all members together
  void connect(cudaStream_t stream);  // so is this: every member exchanges a byte with its neighbours
  ncclComm* opened() const;           // BUG when it is not open yet

  const NcclLibrary& nccl_;
  Group group_;
  ncclComm* communicator_ = nullptr;
};

class NcclGroups {
 public:
  // RunError when the library cannot be used. The calling thread's current device is the one that all transfers are
  // made on.
  explicit NcclGroups(Transport& transport);
  ~NcclGroups();
  NcclGroups(const NcclGroups&) = delete;
  NcclGroups& operator=(const NcclGroups&) = delete;

  // The same group object for the same ranks and tag; it stays as long as this object. It can be used once it is open.
  NcclGroup& want(int tag, const Group& group);

  // Opens what is wanted and not open yet. Every rank of the run comes here after having asked for all groups it is in.
  // Groups of pipeline messages (tag >= kFirstStageTag) are connected too: their first message must not wait for its
  // receiver.
  void open_wanted(cudaStream_t stream);

 private:
  Transport& transport_;
  std::unique_ptr<NcclLibrary> nccl_;
  std::map<std::pair<int, std::vector<int>>, std::unique_ptr<NcclGroup>> groups_;  // by tag and ranks
};

}  // namespace sextant
