#include <algorithm>

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

// The two ends of a message, alike on both sides. Every value that crosses has a group of its own: NCCL tells messages
// apart by their order alone, and two ranks may send several values in one order and take them in another.
NcclGroup& ends_of_message(const CudaPreparation& p) {
  StagePeer peer = peer_of(p.program, p.at, p.op);
  std::vector<int> ranks{p.rank, peer.rank};
  std::sort(ranks.begin(), ranks.end());
  return p.wires->group_for(kFirstStageTag + static_cast<int>(peer.tag), group_of_ranks(ranks, p.rank));
}

int other_end(const NcclGroup& group) {
  return 1 - group.group().self;
}

// On a stream of its own, since a message waits for its receiver and the work behind it need not.
class NcclSend final : public PreparedCudaKernel {
 public:
  explicit NcclSend(const CudaPreparation& p)
      : group_(ends_of_message(p)),
        op_(p.op),
        axis_(pipeline_name(p.program.mesh)),
        wires_(*p.wires),
        device_(p.device) {
    const Value& value = p.program[p.op.inputs[0]];
    int slots = value.buffer < 0 ? 1 : p.program.buffers[static_cast<size_t>(value.buffer)].slots;
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream for messages");
    check_cuda(cudaEventCreateWithFlags(&made_, cudaEventDisableTiming), "an event");
    for (int slot = 0; slot < slots; ++slot)
      check_cuda(cudaEventCreateWithFlags(&gone_.emplace_back(), cudaEventDisableTiming), "an event");
  }

  ~NcclSend() override {
    for (cudaEvent_t event : gone_) cudaEventDestroy(event);
    cudaEventDestroy(made_);
    cudaStreamDestroy(stream_);
  }

  bool capturable() const override { return false; }  // it goes on after the launch

  void launch(const CudaCall& call) override {
    check_cuda(cudaEventRecord(made_, call.stream), "marking what is to be sent");
    check_cuda(cudaStreamWaitEvent(stream_, made_, 0), "waiting for what is to be sent");
    group_.send(call.in[0].data, bytes_of(call.in[0]), other_end(group_), stream_);
    check_cuda(cudaEventRecord(gone(call.microbatch), stream_), "marking what has been sent");
    wires_.count(op_, axis_, bytes_of(call.in[0]));
  }

  // An event that was never recorded counts as passed.
  void settle(int microbatch) override {
    check_cuda(cudaStreamWaitEvent(device_.stream(), gone(microbatch), 0), "waiting for a message");
  }

 private:
  cudaEvent_t gone(int microbatch) const { return gone_[static_cast<size_t>(microbatch) % gone_.size()]; }

  NcclGroup& group_;
  const Op& op_;
  std::string axis_;
  CudaWires& wires_;
  const CudaDevice& device_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t made_ = nullptr;
  std::vector<cudaEvent_t> gone_;  // by slot of the buffer
};

class NcclReceive final : public PreparedCudaKernel {
 public:
  explicit NcclReceive(const CudaPreparation& p) : group_(ends_of_message(p)) {}

  void launch(const CudaCall& call) override {
    group_.receive(call.out[0].data, bytes_of(call.out[0]), other_end(group_), call.stream);
  }

 private:
  NcclGroup& group_;
};

// The pipeline ranks that hold a weight.
Group holders_of(const CudaPreparation& p) {
  std::vector<int> ranks;
  for (int64_t stage : p.op.attrs.integers("stages")) ranks.push_back(rank_at_stage(p.program, p.at, stage));
  return group_of_ranks(std::move(ranks), p.rank);
}

class NcclSumStages final : public PreparedCudaKernel {
 public:
  NcclSumStages(const CudaPreparation& p, const Group& holders)
      : group_(p.wires->group_for(p.op, holders)), op_(p.op), axis_(pipeline_name(p.program.mesh)), wires_(*p.wires) {}

  void launch(const CudaCall& call) override {
    const Tensor& y = call.out[0];
    group_.all_reduce(DeviceSum{call.in[0].data, y.data, y.count(), y.dtype}, call.stream);
    wires_.count(op_, axis_, all_reduce_bytes_sent(y.count(), y.dtype, group_.group()));
  }

 private:
  NcclGroup& group_;
  const Op& op_;
  std::string axis_;
  CudaWires& wires_;
};

// In place already.
class SumOfOne final : public PreparedCudaKernel {
 public:
  void launch(const CudaCall&) override {}
};

bool on_host(const CudaPreparation& p) {
  BUG_IF(!p.wires, "{} has no transport", p.op.path);
  return p.wires->kind() == WireKind::host_staging;
}

template <class Kernel>
std::unique_ptr<PreparedCudaKernel> prepare_message(const CudaPreparation& p) {
  if (on_host(p)) return staged(p);
  return std::make_unique<Kernel>(p);
}

std::unique_ptr<PreparedCudaKernel> prepare_sum(const CudaPreparation& p) {
  Group holders = holders_of(p);
  if (holders.size() == 1) return std::make_unique<SumOfOne>();
  if (on_host(p)) return staged(p);
  return std::make_unique<NcclSumStages>(p, holders);
}

}  // namespace

const CudaKernel send{.prepare = prepare_message<NcclSend>};
const CudaKernel recv{.prepare = prepare_message<NcclReceive>};
const CudaKernel sum_stages{.prepare = prepare_sum};

}  // namespace sextant::cuda
