#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/boxes.h"
#include "mesh/redistribution.h"
#include "targets/cpu/message_sizes.h"

namespace sextant::cpu {

namespace {

int64_t bytes_of(const Tensor& tensor) {
  return tensor.count() * size_of(tensor.dtype);
}
std::span<const std::byte> const_bytes(const Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.data), static_cast<size_t>(bytes_of(tensor))};
}
std::span<std::byte> mutable_bytes(const Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data), static_cast<size_t>(bytes_of(tensor))};
}

// One hop for one rank. Derived classes do the transfer; what all share is whom to talk to, and the sides' placement.
class HopKernel : public PreparedKernel {
 public:
  HopKernel(const Preparation& p, const Hop& hop)
      : wire_(p.wire),
        axes_(axes_text(p.op.attrs.names("axes"))),
        in_(p.program[p.op.inputs[0]]),
        out_(p.program[p.op.outputs[0]]) {
    group_ = group_of_ranks(group_of(p.program.mesh, p.rank, hop.axes), p.rank);
    for (int rank : group_.ranks) peers_.push_back(coordinate_of(p.program.mesh, rank));
    BUG_IF(!wire_ && group_.size() > 1, "{} talks to {} ranks and has no wire", p.op.path, group_.size());
  }

  void run(const KernelCall& call) final {
    int64_t before = wire_ ? wire_->channel.bytes_sent : 0;
    move(call);
    if (wire_ && wire_->channel.bytes_sent > before) wire_->count(axes_, wire_->channel.bytes_sent - before);
  }

 protected:
  virtual void move(const KernelCall& call) = 0;

  int64_t element() const { return size_of(in_.dtype); }
  const Coordinate& own() const { return peers_[static_cast<size_t>(group_.self)]; }

  Wire* wire_;
  std::string axes_;
  const Value &in_, &out_;
  Group group_;
  std::vector<Coordinate> peers_;
};

// slice and pad: the pieces that both layouts of this rank have in common; the rest of the output is zero.
class CopyKernel final : public HopKernel {
 public:
  CopyKernel(const Preparation& p, const Hop& hop) : HopKernel(p, hop) {
    std::vector<Box> boxes = common_boxes(in_.shape, p.program.mesh, {in_.layout, own()}, {out_.layout, own()});
    int64_t copied = 0;
    for (const Box& box : boxes) copied += box.count();
    fill_ = copied < out_.local.count();
    runs_ = runs_between(boxes, in_.local, out_.local, element());
  }

 private:
  void move(const KernelCall& call) override {
    if (fill_) std::memset(call.out[0].data, 0, static_cast<size_t>(bytes_of(call.out[0])));
    copy_runs(runs_, const_bytes(call.in[0]).data(), mutable_bytes(call.out[0]).data());
  }
  std::vector<Run> runs_;
  bool fill_ = false;
};

class KeepFirstKernel final : public HopKernel {
 public:
  using HopKernel::HopKernel;

 private:
  void move(const KernelCall& call) override {
    if (group_.self != 0)
      std::memset(call.out[0].data, 0, static_cast<size_t>(bytes_of(call.out[0])));
    else if (call.out[0].data != call.in[0].data)
      std::memcpy(call.out[0].data, call.in[0].data, static_cast<size_t>(bytes_of(call.out[0])));
  }
};

class NothingKernel final : public HopKernel {
 public:
  using HopKernel::HopKernel;

 private:
  void move(const KernelCall&) override {}  // memory gave the output the input's bytes
};

class AllReduceKernel final : public HopKernel {
 public:
  AllReduceKernel(const Preparation& p, const Hop& hop)
      : HopKernel(p, hop), reduction_(hop.transfer == Transfer::all_reduce_max ? Reduction::max : Reduction::sum) {}

  bool is_collective() const override { return group_.size() > 1; }

 private:
  void move(const KernelCall& call) override {
    if (call.out[0].data != call.in[0].data)
      std::memcpy(call.out[0].data, call.in[0].data, static_cast<size_t>(bytes_of(call.out[0])));
    int64_t scratch = all_reduce_scratch(call.out[0].count(), call.out[0].dtype, group_.size());
    all_reduce(wire_->channel, group_,
               {.data = mutable_bytes(call.out[0]),
                .scratch = {call.workspace, static_cast<size_t>(scratch)},
                .dtype = call.out[0].dtype,
                .reduction = reduction_});
  }
  Reduction reduction_;
};

class AllGatherKernel final : public HopKernel {
 public:
  AllGatherKernel(const Preparation& p, const Hop& hop) : HopKernel(p, hop) {
    direct_ = p.op.attrs.integer_or("packed", 1) == 0;
    int64_t part = in_.local.count() * element(), covered = 0;
    for (size_t i = 0; i < peers_.size(); ++i) {
      std::vector<Box> boxes = common_boxes(in_.shape, p.program.mesh, {in_.layout, peers_[i]}, {out_.layout, own()});
      for (const Box& box : boxes) covered += box.count();
      for (Run run : runs_between(boxes, in_.local, out_.local, element())) {
        run.from += static_cast<int64_t>(i) * part;
        runs_.push_back(run);
      }
    }
    check_covered(p, covered);
  }

  bool is_collective() const override { return group_.size() > 1; }

 private:
  // Every element that this rank is to hold comes from somebody.
  void check_covered(const Preparation& p, int64_t covered) {
    int64_t wanted = 0;
    for (const Box& box : common_boxes(out_.shape, p.program.mesh, {out_.layout, own()}, {out_.layout, own()}))
      wanted += box.count();
    BUG_IF(covered != wanted, "{}: the group holds {} of {} elements", p.op.path, covered, wanted);
    fill_ = wanted < out_.local.count();
  }

  void move(const KernelCall& call) override {
    if (direct_) return all_gather(wire_->channel, group_, const_bytes(call.in[0]), mutable_bytes(call.out[0]));
    std::span<std::byte> parts{call.workspace, static_cast<size_t>(bytes_of(call.in[0]) * group_.size())};
    all_gather(wire_->channel, group_, const_bytes(call.in[0]), parts);
    if (fill_) std::memset(call.out[0].data, 0, static_cast<size_t>(bytes_of(call.out[0])));
    copy_runs(runs_, parts.data(), mutable_bytes(call.out[0]).data());
  }

  bool direct_ = false, fill_ = false;
  std::vector<Run> runs_;  // from the gathered parts into the output
};

class ReduceScatterKernel final : public HopKernel {
 public:
  ReduceScatterKernel(const Preparation& p, const Hop& hop) : HopKernel(p, hop) {
    direct_ = p.op.attrs.integer_or("packed", 1) == 0;
    int64_t part = out_.local.count() * element();
    for (size_t i = 0; i < peers_.size(); ++i) {
      std::vector<Box> boxes = common_boxes(in_.shape, p.program.mesh, {in_.layout, own()}, {out_.layout, peers_[i]});
      for (Run run : runs_between(boxes, in_.local, out_.local, element())) {
        run.to += static_cast<int64_t>(i) * part;
        runs_.push_back(run);
      }
    }
  }

  bool is_collective() const override { return group_.size() > 1; }

 private:
  void move(const KernelCall& call) override {
    size_t part = static_cast<size_t>(bytes_of(call.out[0]));
    std::span<std::byte> scratch{call.workspace, part};
    std::span<const std::byte> parts = const_bytes(call.in[0]);
    if (!direct_) {
      std::byte* packed = call.workspace + padded_part(static_cast<int64_t>(part));
      std::memset(packed, 0, part * static_cast<size_t>(group_.size()));
      copy_runs(runs_, parts.data(), packed);
      parts = {packed, part * static_cast<size_t>(group_.size())};
    }
    reduce_scatter(wire_->channel, group_,
                   {.parts = parts, .own = mutable_bytes(call.out[0]), .scratch = scratch, .dtype = call.out[0].dtype});
  }

  bool direct_ = false;
  std::vector<Run> runs_;  // from the input into the parts
};

class AllToAllKernel final : public HopKernel {
 public:
  AllToAllKernel(const Preparation& p, const Hop& hop) : HopKernel(p, hop) {
    auto boxes = [&](const Coordinate& from, const Coordinate& to) {
      return common_boxes(in_.shape, p.program.mesh, {in_.layout, from}, {out_.layout, to});
    };
    part_ = p.op.attrs.integer("part") * element();
    for (size_t i = 0; i < peers_.size(); ++i) {
      int64_t at = static_cast<int64_t>(i) * part_;
      for (const Run& run : runs_to_packed(boxes(own(), peers_[i]), in_.local, element(), at)) pack_.push_back(run);
      for (const Run& run : runs_from_packed(boxes(peers_[i], own()), out_.local, element(), at))
        unpack_.push_back(run);
    }
  }

  bool is_collective() const override { return group_.size() > 1; }

 private:
  void move(const KernelCall& call) override {
    size_t bytes = static_cast<size_t>(part_) * static_cast<size_t>(group_.size());
    std::span<std::byte> sent{call.workspace, bytes},
        received{call.workspace + padded_part(static_cast<int64_t>(bytes)), bytes};
    copy_runs(pack_, const_bytes(call.in[0]).data(), sent.data());
    all_to_all(wire_->channel, group_, sent, received);
    copy_runs(unpack_, received.data(), mutable_bytes(call.out[0]).data());
  }

  int64_t part_ = 0;
  std::vector<Run> pack_, unpack_;
};

std::unique_ptr<PreparedKernel> prepare(const Preparation& p) {
  const Value &in = p.program[p.op.inputs[0]], &out = p.program[p.op.outputs[0]];
  Hop hop = hop_between(in.layout, out.layout, p.program.mesh);
  switch (hop.transfer) {
    case Transfer::nothing:
      return std::make_unique<NothingKernel>(p, hop);
    case Transfer::slice:
    case Transfer::pad:
      return std::make_unique<CopyKernel>(p, hop);
    case Transfer::keep_first:
      return std::make_unique<KeepFirstKernel>(p, hop);
    case Transfer::all_gather:
      return std::make_unique<AllGatherKernel>(p, hop);
    case Transfer::reduce_scatter:
      return std::make_unique<ReduceScatterKernel>(p, hop);
    case Transfer::all_reduce:
    case Transfer::all_reduce_max:
      return std::make_unique<AllReduceKernel>(p, hop);
    case Transfer::all_to_all:
      return std::make_unique<AllToAllKernel>(p, hop);
  }
  BUG("unknown transfer");
}

}  // namespace

const CpuKernel redistribute{.prepare = prepare};

}  // namespace sextant::cpu
