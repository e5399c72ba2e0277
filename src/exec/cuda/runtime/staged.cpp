#include "exec/cuda/runtime/staged.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "exec/cpu/kernel.h"
#include "exec/cuda/runtime/check.h"
#include "exec/cuda/runtime/wires.h"
#include "ir/alias.h"
#include "targets/cpu/cpu_target.h"

namespace sextant::cuda {

namespace {

constexpr int64_t kAlignment = 64;  // that CPU kernels rely on

int64_t bytes_of(const Tensor& tensor) {
  return tensor.count() * size_of(tensor.dtype);
}

class StagedKernel final : public PreparedCudaKernel {
 public:
  explicit StagedKernel(const CudaPreparation& p)
      : lane_(p.wires->lane_of(p.op)), inputs_read_(p.in.size() - (writes_into(p.op) ? 1 : 0)) {
    const CpuKernel& kernel = cpu_kernel(*p.op.def);
    BUG_IF(!kernel.prepare, "{} needs no other rank", p.op.path);
    kernel_ = kernel.prepare({p.op, p.program, p.rank, p.at, &lane_.wire});
    place(p, cpu_kernel_needs().workspace(*p.op.def, {p.op.attrs, types_of(p.in), types_of(p.out)}).n);
    if (p.op.def->holds_inputs)
      give_slots(p);
    else
      lane_.staging.want(slot_bytes_);
  }

  bool capturable() const override { return false; }
  void settle(int microbatch) override { kernel_->settle(microbatch); }

  // The lane's memory is free once its stream has done what came before.
  void launch(const CudaCall& call) override {
    std::byte* host =
        held_ ? held_->data() + call.microbatch % slots_ * slot_bytes_ : lane_.staging.data_for(call.stream);
    move_to(host, call.in, in_at_, in_);
    move_to(host, call.out, out_at_, out_);
    for (size_t i = 0; i < inputs_read_; ++i)
      check_cuda(cudaMemcpyAsync(in_[i].data, call.in[i].data, size(in_[i]), cudaMemcpyDeviceToHost, call.stream),
                 "copying an operand to the host");
    check_cuda(cudaStreamSynchronize(call.stream), "waiting for the operands of a message");
    kernel_->run({in_, out_, call.attrs, host + workspace_at_, lane_.team, call.microbatch, call.sum});
    for (size_t i = 0; i < out_.size(); ++i)
      check_cuda(cudaMemcpyAsync(call.out[i].data, out_[i].data, size(out_[i]), cudaMemcpyHostToDevice, call.stream),
                 "copying a result to the device");
  }

 private:
  static size_t size(const Tensor& tensor) { return static_cast<size_t>(bytes_of(tensor)); }

  // Operands one behind the other, then the CPU kernel's scratch. Operands that are one on the device are one here.
  void place(const CudaPreparation& p, int64_t workspace) {
    auto next = [&](int64_t bytes) {
      int64_t at = slot_bytes_;
      slot_bytes_ += round_up(bytes, kAlignment);
      return at;
    };
    std::map<std::pair<const void*, int64_t>, int64_t> placed;  // by device address and size
    auto place_of = [&](const Tensor& tensor) {
      auto [at, is_new] = placed.try_emplace({tensor.data, bytes_of(tensor)});
      if (is_new) at->second = next(bytes_of(tensor));
      return at->second;
    };
    for (const Tensor& tensor : p.in) in_at_.push_back(place_of(tensor));
    for (const Tensor& tensor : p.out) out_at_.push_back(place_of(tensor));
    workspace_at_ = next(workspace);
    in_.assign(p.in.begin(), p.in.end());
    out_.assign(p.out.begin(), p.out.end());
  }

  // A message under way keeps its bytes until it is settled: as many copies as the value itself has.
  void give_slots(const CudaPreparation& p) {
    for (ValueId id : p.op.inputs)
      if (int32_t buffer = p.program[id].buffer; buffer >= 0)
        slots_ = std::max(slots_, static_cast<int>(p.program.buffers[static_cast<size_t>(buffer)].slots));
    held_ = std::make_unique<PinnedMemory>(slots_ * slot_bytes_);
  }

  static void move_to(std::byte* host, std::span<const Tensor> device, const std::vector<int64_t>& at,
                      std::vector<Tensor>& out) {
    for (size_t i = 0; i < out.size(); ++i) {
      out[i].placement = device[i].placement;
      out[i].data = host + at[i];
    }
  }

  HostLane& lane_;
  size_t inputs_read_;  // an input that is only written over is not
  std::unique_ptr<PreparedKernel> kernel_;
  std::vector<Tensor> in_, out_;         // on the host
  std::vector<int64_t> in_at_, out_at_;  // bytes from the slot's start
  int64_t workspace_at_ = 0, slot_bytes_ = 0;
  int slots_ = 1;
  std::unique_ptr<PinnedMemory> held_;  // instead of the lane's, for messages under way
};

}  // namespace

std::unique_ptr<PreparedCudaKernel> staged(const CudaPreparation& p) {
  return std::make_unique<StagedKernel>(p);
}

}  // namespace sextant::cuda
