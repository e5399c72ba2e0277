#include <algorithm>

#include "base/error.h"
#include "exec/cpu/kernel.h"

namespace sextant::cpu {

namespace {

std::span<std::byte> bytes_of(const Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data), static_cast<size_t>(tensor.count() * size_of(tensor.dtype))};
}

int tag_of(const StagePeer& peer) {
  return kFirstStageTag + static_cast<int>(peer.tag);
}

class SendKernel final : public PreparedKernel {
 public:
  explicit SendKernel(const Preparation& p)
      : wire_(*p.wire), peer_(peer_of(p.program, p.at, p.op)), axis_(pipeline_name(p.program.mesh)) {
    const Value& value = p.program[p.op.inputs[0]];
    slots_ = value.buffer < 0 ? 1 : p.program.buffers[static_cast<size_t>(value.buffer)].slots;
    under_way_.resize(static_cast<size_t>(slots_));
  }

  void run(const KernelCall& call) override {
    under_way_[static_cast<size_t>(call.microbatch % slots_)] =
        wire_.channel.transport.send(peer_.rank, tag_of(peer_), bytes_of(call.in[0]));
    wire_.count(axis_, static_cast<int64_t>(bytes_of(call.in[0]).size()));
  }

  void settle(int microbatch) override {
    Ticket& ticket = under_way_[static_cast<size_t>(microbatch % slots_)];
    if (ticket.slot >= 0) wire_.channel.transport.wait(ticket);
    ticket = {};
  }

 private:
  Wire& wire_;
  StagePeer peer_;
  std::string axis_;
  int slots_ = 1;
  std::vector<Ticket> under_way_;  // by slot of the buffer
};

class ReceiveKernel final : public PreparedKernel {
 public:
  explicit ReceiveKernel(const Preparation& p) : wire_(*p.wire), peer_(peer_of(p.program, p.at, p.op)) {}

  void run(const KernelCall& call) override {
    wire_.channel.transport.wait(wire_.channel.transport.receive(peer_.rank, tag_of(peer_), bytes_of(call.out[0])));
  }

 private:
  Wire& wire_;
  StagePeer peer_;
};

class SumStagesKernel final : public PreparedKernel {
 public:
  explicit SumStagesKernel(const Preparation& p) : wire_(*p.wire), axis_(pipeline_name(p.program.mesh)) {
    std::vector<int> ranks;
    for (int64_t stage : p.op.attrs.integers("stages")) ranks.push_back(rank_at_stage(p.program, p.at, stage));
    group_ = group_of_ranks(std::move(ranks), p.rank);
  }

  void run(const KernelCall& call) override {
    int64_t before = wire_.channel.bytes_sent;
    int64_t scratch = all_reduce_scratch(call.out[0].count(), call.out[0].dtype, group_.size());
    all_reduce(wire_.channel, group_,
               {.data = bytes_of(call.out[0]),
                .scratch = {call.workspace, static_cast<size_t>(scratch)},
                .dtype = call.out[0].dtype});
    wire_.count(axis_, wire_.channel.bytes_sent - before);
  }

 private:
  Wire& wire_;
  std::string axis_;
  Group group_;
};

template <class Kernel>
std::unique_ptr<PreparedKernel> prepare(const Preparation& p) {
  BUG_IF(!p.wire, "{} has no transport", p.op.path);
  return std::make_unique<Kernel>(p);
}

}  // namespace

const CpuKernel send{.prepare = prepare<SendKernel>};
const CpuKernel recv{.prepare = prepare<ReceiveKernel>};
const CpuKernel sum_stages{.prepare = prepare<SumStagesKernel>};

}  // namespace sextant::cpu
