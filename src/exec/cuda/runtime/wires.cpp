#include "exec/cuda/runtime/wires.h"

#include <numeric>
#include <set>
#include <utility>

#include "base/error.h"
#include "exec/cuda/runtime/check.h"
#include "ir/lane.h"

namespace sextant {

std::string_view name_of(WireKind kind) {
  return kind == WireKind::nccl ? "NCCL" : "host staging";
}

WireKind choose_wires(Transport& transport, const CudaDevice& device) {
  if (transport.size() == 1) return WireKind::host_staging;  // no other rank; NCCL need not be there
  cudaDeviceProp facts{};
  check_cuda(cudaGetDeviceProperties(&facts, device.index()), "asking for the device's id");
  std::vector<int> ranks(static_cast<size_t>(transport.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<cudaUUID_t> ids(ranks.size());
  Channel channel{.transport = transport, .tag = kHostTag};
  all_gather(channel, group_of_ranks(ranks, transport.rank()), std::as_bytes(std::span(&facts.uuid, 1)),
             std::as_writable_bytes(std::span(ids)));
  std::set<std::string> different;
  for (const cudaUUID_t& id : ids) different.emplace(id.bytes, sizeof id.bytes);
  return different.size() == ids.size() ? WireKind::nccl : WireKind::host_staging;
}

PinnedMemory::~PinnedMemory() {
  if (data_) cudaFreeHost(data_);
}

std::byte* PinnedMemory::data_for(cudaStream_t stream) {
  if (wanted_ > bytes_) {
    check_cuda(cudaStreamSynchronize(stream), "waiting for copies from host memory");
    if (data_) check_cuda(cudaFreeHost(std::exchange(data_, nullptr)), "freeing host memory");
    allocate(wanted_);
  }
  return data_;
}

void PinnedMemory::allocate(int64_t bytes) {
  bytes_ = 0;
  void* data = nullptr;
  check_cuda(cudaMallocHost(&data, static_cast<size_t>(bytes)),
             fmt::format("{} of pinned host memory", human(Bytes{bytes})));
  data_ = static_cast<std::byte*>(data);
  bytes_ = bytes;
}

CudaWires::CudaWires(Transport& transport, const CudaDevice& device, WireKind kind)
    : transport_(transport),
      device_(device),
      kind_(kind),
      compute_lane_{
          .wire = {.channel = {.transport = transport, .tag = kCollectiveTag}, .payload_check = PayloadCheck()}},
      comm_lane_{.wire = {.channel = {.transport = transport, .tag = kCommLaneTag}, .payload_check = PayloadCheck()}} {
  if (kind == WireKind::nccl) groups_ = std::make_unique<NcclGroups>(transport);
}

HostLane& CudaWires::lane_of(const Op& op) {
  return on_comm_lane(op) ? comm_lane_ : compute_lane_;
}

NcclGroup& CudaWires::group_for(const Op& op, const Group& group) {
  return group_for(lane_of(op).wire.channel.tag, group);
}

NcclGroup& CudaWires::group_for(int tag, const Group& group) {
  BUG_IF(!groups_, "a group on the device without NCCL");
  return groups_->want(tag, group);
}

void CudaWires::open_groups() {
  if (!groups_) return;
  device_.use();
  groups_->open_wanted(device_.stream());
}

std::map<std::string, int64_t> CudaWires::bytes_sent() const {
  std::map<std::string, int64_t> bytes;
  for (const HostLane* lane : {&compute_lane_, &comm_lane_})
    for (const auto& [axes, sent] : lane->wire.bytes_sent) bytes[axes] += sent;
  return bytes;
}

void CudaWires::count_again(const std::map<std::string, int64_t>& bytes) {
  for (const auto& [axes, sent] : bytes) compute_lane_.wire.count(axes, sent);
}

}  // namespace sextant
