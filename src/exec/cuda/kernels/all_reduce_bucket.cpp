#include <algorithm>

#include "base/error.h"
#include "exec/cuda/runtime/kernel.h"
#include "exec/cuda/runtime/staged.h"
#include "exec/cuda/runtime/wires.h"

namespace sextant::cuda {

namespace {

Group group_of_bucket(const CudaPreparation& p) {
  return group_of_ranks(group_of(p.program.mesh, p.rank, p.op.attrs.names("axes")), p.rank);
}

// Each gradient where it stands: NCCL makes one transfer of them without packing.
class NcclBucket final : public PreparedCudaKernel {
 public:
  NcclBucket(const CudaPreparation& p, const Group& group)
      : group_(p.wires->group_for(p.op, group)),
        op_(p.op),
        wires_(*p.wires),
        axes_(axes_text(p.op.attrs.names("axes"))) {
    int64_t count = 0;
    for (const Tensor& tensor : p.out) count += tensor.count();
    bytes_ = all_reduce_bytes_sent(count, p.out[0].dtype, group);
    sums_.resize(p.out.size());
  }

  void launch(const CudaCall& call) override {
    for (size_t i = 0; i < sums_.size(); ++i)
      sums_[i] = {call.in[i].data, call.out[i].data, call.out[i].count(), call.out[i].dtype};
    group_.all_reduce(sums_, call.stream);
    wires_.count(op_, axes_, bytes_);
  }

 private:
  NcclGroup& group_;
  const Op& op_;
  CudaWires& wires_;
  std::string axes_;
  int64_t bytes_ = 0;
  std::vector<DeviceSum> sums_;
};

// In place already.
class BucketOfOne final : public PreparedCudaKernel {
 public:
  void launch(const CudaCall&) override {}
};

std::unique_ptr<PreparedCudaKernel> prepare(const CudaPreparation& p) {
  Group group = group_of_bucket(p);
  if (group.size() == 1) return std::make_unique<BucketOfOne>();
  BUG_IF(!p.wires, "{} talks to {} ranks and has no wire", p.op.path, group.size());
  if (p.wires->kind() == WireKind::host_staging) return staged(p);
  return std::make_unique<NcclBucket>(p, group);
}

}  // namespace

const CudaKernel all_reduce_bucket{.prepare = prepare};

}  // namespace sextant::cuda
