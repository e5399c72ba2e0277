#include <string_view>

#include "base/error.h"
#include "exec/cuda/runtime/check.h"
#include "exec/cuda/runtime/device_copy.h"
#include "exec/cuda/runtime/kernel.h"
#include "exec/cuda/runtime/staged.h"
#include "exec/cuda/runtime/wires.h"
#include "mesh/redistribution.h"
#include "targets/cuda/message_sizes.h"

namespace sextant::cuda {

namespace {

int64_t bytes_of(const Tensor& tensor) {
  return tensor.count() * size_of(tensor.dtype);
}

void clear(const Tensor& tensor, cudaStream_t stream) {
  check_cuda(cudaMemsetAsync(tensor.data, 0, static_cast<size_t>(bytes_of(tensor)), stream), "clearing a tensor");
}

void copy_whole(const Tensor& from, const Tensor& to, cudaStream_t stream) {
  if (from.data == to.data) return;
  check_cuda(cudaMemcpyAsync(to.data, from.data, static_cast<size_t>(bytes_of(to)), cudaMemcpyDeviceToDevice, stream),
             "copying a tensor");
}

// One hop as one rank sees it: the two sides of the value, and the ranks that the hop is between.
struct HopView {
  HopView(const CudaPreparation& p, const Hop& hop)
      : mesh(p.program.mesh),
        in(p.program[p.op.inputs[0]]),
        out(p.program[p.op.outputs[0]]),
        group(group_of_ranks(group_of(mesh, p.rank, hop.axes), p.rank)),
        own(p.at) {
    for (int rank : group.ranks) peers.push_back(coordinate_of(mesh, rank));
  }

  int64_t element() const { return size_of(in.dtype); }
  std::vector<Box> boxes(const Coordinate& from, const Coordinate& to) const {
    return common_boxes(in.shape, mesh, {in.layout, from}, {out.layout, to});
  }
  // Runs of elements that are both in the input of one rank and in the output of another (or the same) rank.
  std::vector<cpu::Run> runs(const Coordinate& from, const Coordinate& to) const {
    return cpu::runs_between(boxes(from, to), in.local, out.local, element());
  }

  const Mesh& mesh;
  const Value &in, &out;
  Group group;
  Coordinate own;
  std::vector<Coordinate> peers;
};

int64_t bytes_in(const std::vector<cpu::Run>& runs) {
  int64_t bytes = 0;
  for (const cpu::Run& run : runs) bytes += run.bytes;
  return bytes;
}

// slice and pad, and every hop among one rank: the pieces that both layouts of this rank have in common; the rest of
// the output is zero.
class LocalHop final : public PreparedCudaKernel {
 public:
  explicit LocalHop(const HopView& hop) {
    std::vector<cpu::Run> runs = hop.runs(hop.own, hop.own);
    fill_ = bytes_in(runs) < hop.out.local_bytes().n;
    copy_ = DeviceCopy(runs);
  }

  void launch(const CudaCall& call) override {
    if (call.in[0].data == call.out[0].data) return;
    if (fill_) clear(call.out[0], call.stream);
    copy_.enqueue(call.in[0].data, call.out[0].data, call.stream);
  }

 private:
  DeviceCopy copy_;
  bool fill_;
};

class NothingHop final : public PreparedCudaKernel {
 public:
  void launch(const CudaCall& call) override { copy_whole(call.in[0], call.out[0], call.stream); }
};

class KeepFirstHop final : public PreparedCudaKernel {
 public:
  explicit KeepFirstHop(const HopView& hop) : first_(hop.group.self == 0) {}

  void launch(const CudaCall& call) override {
    if (first_)
      copy_whole(call.in[0], call.out[0], call.stream);
    else
      clear(call.out[0], call.stream);
  }

 private:
  bool first_;
};

// A hop from device to device. What it sends is counted as the collectives of comm/ count it.
class NcclHop : public PreparedCudaKernel {
 public:
  NcclHop(const CudaPreparation& p, const HopView& hop)
      : group_(p.wires->group_for(p.op, hop.group)),
        op_(p.op),
        wires_(*p.wires),
        axes_(axes_text(p.op.attrs.names("axes"))) {}

  void launch(const CudaCall& call) final {
    move(call);
    wires_.count(op_, axes_, bytes_sent(call));
  }

 protected:
  virtual void move(const CudaCall& call) = 0;
  virtual int64_t bytes_sent(const CudaCall& call) const = 0;
  int64_t ranks() const { return group_.group().size(); }

  NcclGroup& group_;

 private:
  const Op& op_;
  CudaWires& wires_;
  std::string axes_;
};

class NcclAllReduce final : public NcclHop {
 public:
  NcclAllReduce(const CudaPreparation& p, const HopView& hop, Reduction reduction)
      : NcclHop(p, hop), reduction_(reduction) {}

 private:
  void move(const CudaCall& call) override {
    const Tensor& out = call.out[0];
    group_.all_reduce(DeviceSum{call.in[0].data, out.data, out.count(), out.dtype, reduction_}, call.stream);
  }
  int64_t bytes_sent(const CudaCall& call) const override {
    return all_reduce_bytes_sent(call.out[0].count(), call.out[0].dtype, group_.group());
  }

  Reduction reduction_;
};

class NcclAllGather final : public NcclHop {
 public:
  NcclAllGather(const CudaPreparation& p, const HopView& hop)
      : NcclHop(p, hop), direct_(p.op.attrs.integer_or("packed", 1) == 0) {
    std::vector<cpu::Run> runs;
    for (size_t i = 0; i < hop.peers.size(); ++i)
      for (cpu::Run run : hop.runs(hop.peers[i], hop.own)) {
        run.from += static_cast<int64_t>(i) * hop.in.local_bytes().n;
        runs.push_back(run);
      }
    fill_ = bytes_in(runs) < hop.out.local_bytes().n;
    unpack_ = DeviceCopy(runs);
  }

 private:
  void move(const CudaCall& call) override {
    void* parts = direct_ ? call.out[0].data : call.workspace;
    group_.all_gather(call.in[0].data, parts, bytes_of(call.in[0]), call.stream);
    if (direct_) return;
    if (fill_) clear(call.out[0], call.stream);
    unpack_.enqueue(parts, call.out[0].data, call.stream);
  }
  int64_t bytes_sent(const CudaCall& call) const override { return (ranks() - 1) * bytes_of(call.in[0]); }

  bool direct_, fill_;
  DeviceCopy unpack_;
};

class NcclReduceScatter final : public NcclHop {
 public:
  NcclReduceScatter(const CudaPreparation& p, const HopView& hop)
      : NcclHop(p, hop), direct_(p.op.attrs.integer_or("packed", 1) == 0) {
    std::vector<cpu::Run> runs;
    for (size_t i = 0; i < hop.peers.size(); ++i)
      for (cpu::Run run : hop.runs(hop.own, hop.peers[i])) {
        run.to += static_cast<int64_t>(i) * hop.out.local_bytes().n;
        runs.push_back(run);
      }
    pack_ = DeviceCopy(runs);
  }

 private:
  void move(const CudaCall& call) override {
    const void* parts = call.in[0].data;
    if (!direct_) {
      size_t bytes = static_cast<size_t>(ranks() * bytes_of(call.out[0]));
      check_cuda(cudaMemsetAsync(call.workspace, 0, bytes, call.stream), "clearing packed parts");
      pack_.enqueue(parts, call.workspace, call.stream);
      parts = call.workspace;
    }
    group_.reduce_scatter({parts, call.out[0].data, call.out[0].count(), call.out[0].dtype}, call.stream);
  }
  int64_t bytes_sent(const CudaCall& call) const override { return (ranks() - 1) * bytes_of(call.out[0]); }

  bool direct_;
  DeviceCopy pack_;
};

class NcclAllToAll final : public NcclHop {
 public:
  NcclAllToAll(const CudaPreparation& p, const HopView& hop)
      : NcclHop(p, hop), part_(p.op.attrs.integer("part") * hop.element()) {
    std::vector<cpu::Run> pack, unpack;
    for (size_t i = 0; i < hop.peers.size(); ++i) {
      int64_t at = static_cast<int64_t>(i) * part_;
      for (const cpu::Run& run : cpu::runs_to_packed(hop.boxes(hop.own, hop.peers[i]), hop.in.local, hop.element(), at))
        pack.push_back(run);
      for (const cpu::Run& run :
           cpu::runs_from_packed(hop.boxes(hop.peers[i], hop.own), hop.out.local, hop.element(), at))
        unpack.push_back(run);
    }
    pack_ = DeviceCopy(pack);
    unpack_ = DeviceCopy(unpack);
    fill_ = bytes_in(unpack) < hop.out.local_bytes().n;
  }

 private:
  void move(const CudaCall& call) override {
    std::byte *sent = call.workspace, *received = call.workspace + padded_part(ranks() * part_);
    pack_.enqueue(call.in[0].data, sent, call.stream);
    group_.all_to_all(sent, received, part_, call.stream);
    if (fill_) clear(call.out[0], call.stream);
    unpack_.enqueue(received, call.out[0].data, call.stream);
  }
  int64_t bytes_sent(const CudaCall&) const override { return (ranks() - 1) * part_; }

  int64_t part_;
  bool fill_;
  DeviceCopy pack_, unpack_;
};

std::unique_ptr<PreparedCudaKernel> prepare(const CudaPreparation& p) {
  Hop hop = hop_between(p.program[p.op.inputs[0]].layout, p.program[p.op.outputs[0]].layout, p.program.mesh);
  HopView view(p, hop);
  if (hop.transfer == Transfer::nothing) return std::make_unique<NothingHop>();
  if (hop.transfer == Transfer::keep_first) return std::make_unique<KeepFirstHop>(view);
  bool local = hop.transfer == Transfer::slice || hop.transfer == Transfer::pad || view.group.size() == 1;
  if (local) return std::make_unique<LocalHop>(view);
  BUG_IF(!p.wires, "{} talks to {} ranks and has no wire", p.op.path, view.group.size());
  if (p.wires->kind() == WireKind::host_staging) return staged(p);
  switch (hop.transfer) {
    case Transfer::all_reduce:
      return std::make_unique<NcclAllReduce>(p, view, Reduction::sum);
    case Transfer::all_reduce_max:
      return std::make_unique<NcclAllReduce>(p, view, Reduction::max);
    case Transfer::all_gather:
      return std::make_unique<NcclAllGather>(p, view);
    case Transfer::reduce_scatter:
      return std::make_unique<NcclReduceScatter>(p, view);
    case Transfer::all_to_all:
      return std::make_unique<NcclAllToAll>(p, view);
    default:
      BUG("unknown transfer");
  }
}

}  // namespace

const CudaKernel redistribute{.prepare = prepare};

}  // namespace sextant::cuda
