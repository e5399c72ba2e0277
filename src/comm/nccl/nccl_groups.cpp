#include "comm/nccl/nccl_groups.h"

#include <exception>

#include "base/error.h"
#include "comm/nccl/nccl_library.h"
#include "comm/tags.h"

namespace sextant {

namespace {

ncclDataType_t nccl_type(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return ncclFloat64;
    case DType::f32:
      return ncclFloat32;
    case DType::bf16:
      return ncclBfloat16;
    case DType::f16:
      return ncclFloat16;
    case DType::i32:
      return ncclInt32;
    default:
      BUG("no reduction in {} on the device", name_of(dtype));
  }
}

size_t unsigned_count(int64_t count) {
  return static_cast<size_t>(count);
}

// Transfers between its two ends count as one, in whatever order their partners make them.
class Together {
 public:
  explicit Together(const NcclLibrary& nccl) : nccl_(nccl) { nccl_.check(nccl_.group_start(), "beginning a group"); }
  ~Together() {
    if (!ended_) nccl_.group_end();  // an exception is under way; it has the cause
  }
  void end() {
    ended_ = true;
    nccl_.check(nccl_.group_end(), "ending a group");
  }

 private:
  const NcclLibrary& nccl_;
  bool ended_ = false;
};

}  // namespace

NcclGroup::NcclGroup(const NcclLibrary& nccl, Group group) : nccl_(nccl), group_(std::move(group)) {}

NcclGroup::~NcclGroup() {
  if (!communicator_) return;
  if (std::uncaught_exceptions() > 0)
    nccl_.comm_abort(communicator_);
  else
    nccl_.comm_destroy(communicator_);
}

void NcclGroup::open(Transport& transport) {
  ncclUniqueId id{};
  if (group_.self == 0) nccl_.check(nccl_.get_unique_id(&id), "making an id for a group");
  Channel channel{.transport = transport, .tag = kHostTag};
  broadcast(channel, group_, std::as_writable_bytes(std::span(&id, 1)), 0);
  nccl_.check(nccl_.comm_init_rank(&communicator_, group_.size(), id, group_.self),
              fmt::format("opening a group of the ranks {}", fmt::join(group_.ranks, ", ")));
}

void NcclGroup::connect(cudaStream_t stream) {
  void* bytes = nullptr;
  if (cudaError_t status = cudaMalloc(&bytes, 2); status != cudaSuccess)
    throw RunError("cuda", fmt::format("connecting ranks: {}", cudaGetErrorString(status)));
  std::unique_ptr<void, cudaError_t (*)(void*)> freed(bytes, cudaFree);
  shift(bytes, static_cast<std::byte*>(bytes) + 1, 1, stream);
  if (cudaError_t status = cudaStreamSynchronize(stream); status != cudaSuccess)
    throw RunError("cuda", fmt::format("connecting ranks: {}", cudaGetErrorString(status)));
}

ncclComm* NcclGroup::opened() const {
  BUG_IF(!communicator_, "the group of the ranks {} is used before it is open", fmt::join(group_.ranks, ", "));
  return communicator_;
}

void NcclGroup::all_reduce(const DeviceSum& sum, cudaStream_t stream) {
  ncclRedOp_t reduction = sum.reduction == Reduction::max ? ncclMax : ncclSum;
  nccl_.check(
      nccl_.all_reduce(sum.from, sum.to, unsigned_count(sum.count), nccl_type(sum.dtype), reduction, opened(), stream),
      "all-reduce");
}

void NcclGroup::all_reduce(std::span<const DeviceSum> sums, cudaStream_t stream) {
  Together together(nccl_);
  for (const DeviceSum& sum : sums) all_reduce(sum, stream);
  together.end();
}

void NcclGroup::reduce_scatter(const DeviceSum& sum, cudaStream_t stream) {
  nccl_.check(nccl_.reduce_scatter(sum.from, sum.to, unsigned_count(sum.count), nccl_type(sum.dtype), ncclSum, opened(),
                                   stream),
              "reduce-scatter");
}

void NcclGroup::all_gather(const void* own, void* whole, int64_t bytes, cudaStream_t stream) {
  nccl_.check(nccl_.all_gather(own, whole, unsigned_count(bytes), ncclUint8, opened(), stream), "all-gather");
}

void NcclGroup::all_to_all(const void* parts, void* received, int64_t part_bytes, cudaStream_t stream) {
  Together together(nccl_);
  for (int member = 0; member < group_.size(); ++member) {
    send(static_cast<const std::byte*>(parts) + member * part_bytes, part_bytes, member, stream);
    receive(static_cast<std::byte*>(received) + member * part_bytes, part_bytes, member, stream);
  }
  together.end();
}

void NcclGroup::send(const void* data, int64_t bytes, int to, cudaStream_t stream) {
  nccl_.check(nccl_.send(data, unsigned_count(bytes), ncclUint8, to, opened(), stream), "send");
}

void NcclGroup::receive(void* data, int64_t bytes, int from, cudaStream_t stream) {
  nccl_.check(nccl_.receive(data, unsigned_count(bytes), ncclUint8, from, opened(), stream), "receive");
}

void NcclGroup::shift(const void* out, void* in, int64_t bytes, cudaStream_t stream) {
  int n = group_.size();
  Together together(nccl_);
  send(out, bytes, (group_.self + 1) % n, stream);
  receive(in, bytes, (group_.self + n - 1) % n, stream);
  together.end();
}

NcclGroups::NcclGroups(Transport& transport)
    : transport_(transport), nccl_(std::make_unique<NcclLibrary>(load_nccl())) {}
NcclGroups::~NcclGroups() = default;

NcclGroup& NcclGroups::want(int tag, const Group& group) {
  std::unique_ptr<NcclGroup>& place = groups_[{tag, group.ranks}];
  if (!place) place = std::make_unique<NcclGroup>(*nccl_, group);
  return *place;
}

// The map is in the same order on all ranks, since it is an order of tags and ranks: of the groups that are still to be
// opened anywhere, the first is next for each of its members.
void NcclGroups::open_wanted(cudaStream_t stream) {
  for (auto& [key, group] : groups_) {
    if (group->communicator_) continue;
    group->open(transport_);
    if (key.first >= kFirstStageTag) group->connect(stream);
  }
}

}  // namespace sextant
