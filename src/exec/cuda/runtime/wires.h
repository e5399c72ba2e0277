// CudaWires: what the ops of one rank on a GPU talk to other ranks through. Two ways, chosen once per run:
//   host_staging  through host memory and the run's Transport, by the CPU's own kernels: several ranks may share a GPU
//   nccl          from GPU to GPU: every rank has one of its own
// Enters: the rank's transport and device. Leaves: for each op its wire (staging) or its group (NCCL), and a count of
// bytes.
#pragma once

#include <cuda_runtime.h>
#include <cstdint>

#include <map>
#include <memory>
#include <string>

#include "base/threads.h"
#include "comm/nccl/nccl_groups.h"
#include "exec/cpu/wire.h"
#include "exec/cuda/runtime/device.h"
#include "ir/op.h"

namespace sextant {

enum class WireKind : uint8_t { host_staging, nccl };

std::string_view name_of(WireKind kind);  // "host staging", "NCCL"

// NCCL when every rank of several has a device of its own, else staging. All ranks come here together and get the same
// answer.
WireKind choose_wires(Transport& transport, const CudaDevice& device);

// Host memory that the device copies to and from at full speed.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  explicit PinnedMemory(int64_t bytes) { allocate(bytes); }
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  // The most that anybody wants is allocated when it is first used. What it held is lost when it grows, after all
  // copies of the one stream that uses it: waiting for the whole device would disturb a rank beside this one that is
  // capturing a graph.
  void want(int64_t bytes) { wanted_ = std::max(wanted_, bytes); }
  std::byte* data_for(cudaStream_t stream);
  std::byte* data() const { return data_; }

 private:
  void allocate(int64_t bytes);

  int64_t wanted_ = 0;
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

// Resources that the staged ops of one lane share: they run one after the other, on one stream and one thread at a
// time.
struct HostLane {
  Wire wire;
  PinnedMemory staging = {};
  ThreadTeam team{1};
};

class CudaWires {
 public:
  // RunError when NCCL is chosen and cannot be used.
  CudaWires(Transport& transport, const CudaDevice& device, WireKind kind);
  CudaWires(const CudaWires&) = delete;
  CudaWires& operator=(const CudaWires&) = delete;

  WireKind kind() const { return kind_; }
  Transport& transport() const { return transport_; }

  // Of the lane that the op runs on.
  HostLane& lane_of(const Op& op);

  // The ranks that an op talks to, on the device; NCCL only. The group can be used after open_groups.
  NcclGroup& group_for(const Op& op, const Group& group);  // by the tag of the op's lane
  NcclGroup& group_for(int tag, const Group& group);
  // After all ops of a Program have been prepared and before the first is launched: all ranks come here together.
  void open_groups();

  // Bytes that ops have sent, by axes: "dp", "dp,cp", "pp". Launching counts; an executor that replays a captured
  // region adds what launching it had counted.
  std::map<std::string, int64_t> bytes_sent() const;
  void count(const Op& op, std::string_view axes, int64_t bytes) { lane_of(op).wire.count(axes, bytes); }
  void count_again(const std::map<std::string, int64_t>& bytes);

 private:
  Transport& transport_;
  const CudaDevice& device_;
  WireKind kind_;
  HostLane compute_lane_, comm_lane_;
  std::unique_ptr<NcclGroups> groups_;  // NCCL only
};

}  // namespace sextant
