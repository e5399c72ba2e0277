#include "base/error.h"
#include "exec/cuda/runtime/check.h"
#include "exec/cuda/runtime/kernel.h"
#include "exec/cuda/runtime/staged.h"
#include "exec/cuda/runtime/wires.h"

namespace sextant::cuda {

namespace {

int64_t bytes_of(const Tensor& tensor) {
  return tensor.count() * size_of(tensor.dtype);
}

class RingOfOne final : public PreparedCudaKernel {
 public:
  void launch(const CudaCall& call) override {
    check_cuda(cudaMemcpyAsync(call.out[0].data, call.in[0].data, static_cast<size_t>(bytes_of(call.in[0])),
                               cudaMemcpyDeviceToDevice, call.stream),
               "a copy on the device");
  }
};

class NcclShift final : public PreparedCudaKernel {
 public:
  NcclShift(const CudaPreparation& p, const Group& group)
      : group_(p.wires->group_for(p.op, group)), op_(p.op), wires_(*p.wires), axis_(p.op.attrs.text_or("axis", "")) {}

  void launch(const CudaCall& call) override {
    group_.shift(call.in[0].data, call.out[0].data, bytes_of(call.in[0]), call.stream);
    wires_.count(op_, axis_, bytes_of(call.in[0]));
  }

 private:
  NcclGroup& group_;
  const Op& op_;
  CudaWires& wires_;
  std::string axis_;
};

std::unique_ptr<PreparedCudaKernel> prepare(const CudaPreparation& p) {
  auto axis = p.program.mesh.find(p.op.attrs.text_or("axis", ""));
  BUG_IF(!axis, "{}: the mesh has no axis {}", p.op.path, p.op.attrs.text_or("axis", ""));
  Group group = group_of_ranks(group_of(p.program.mesh, p.rank, std::vector<int>{*axis}), p.rank);
  if (group.size() == 1) return std::make_unique<RingOfOne>();
  BUG_IF(!p.wires, "{} talks to {} ranks and has no wire", p.op.path, group.size());
  if (p.wires->kind() == WireKind::host_staging) return staged(p);
  return std::make_unique<NcclShift>(p, group);
}

}  // namespace

const CudaKernel ring_shift{.prepare = prepare};

}  // namespace sextant::cuda
