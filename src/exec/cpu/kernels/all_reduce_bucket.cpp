#include <cstring>

#include "base/error.h"
#include "exec/cpu/kernel.h"
#include "targets/cpu/message_sizes.h"

namespace sextant::cpu {

namespace {

int64_t total_count(std::span<const Tensor> tensors) {
  int64_t count = 0;
  for (const Tensor& tensor : tensors) count += tensor.count();
  return count;
}

class BucketKernel final : public PreparedKernel {
 public:
  explicit BucketKernel(const Preparation& p) : wire_(p.wire), axes_(axes_text(p.op.attrs.names("axes"))) {
    group_ = group_of_ranks(group_of(p.program.mesh, p.rank, p.op.attrs.names("axes")), p.rank);
    BUG_IF(!wire_ && group_.size() > 1, "{} talks to {} ranks and has no wire", p.op.path, group_.size());
  }

  bool is_collective() const override { return group_.size() > 1; }

  void run(const KernelCall& call) override {
    if (group_.size() == 1) return;
    DType dtype = call.out[0].dtype;
    int64_t count = total_count(call.out), bytes = count * size_of(dtype);
    std::byte* packed = call.workspace;
    for_packed(call, packed,
               [](std::byte* in_bucket, std::byte* tensor, size_t size) { std::memcpy(in_bucket, tensor, size); });
    int64_t before = wire_->channel.bytes_sent;
    all_reduce(
        wire_->channel, group_,
        {.data = {packed, static_cast<size_t>(bytes)},
         .scratch = {packed + padded_part(bytes), static_cast<size_t>(all_reduce_scratch(count, dtype, group_.size()))},
         .dtype = dtype});
    for_packed(call, packed,
               [](std::byte* in_bucket, std::byte* tensor, size_t size) { std::memcpy(tensor, in_bucket, size); });
    wire_->count(axes_, wire_->channel.bytes_sent - before);
  }

 private:
  template <class Copy>
  static void for_packed(const KernelCall& call, std::byte* at, const Copy& copy) {
    for (const Tensor& tensor : call.out) {
      size_t size = static_cast<size_t>(tensor.count() * size_of(tensor.dtype));
      copy(at, tensor.as<std::byte>(), size);
      at += size;
    }
  }

  Wire* wire_;
  std::string axes_;
  Group group_;
};

std::unique_ptr<PreparedKernel> prepare(const Preparation& p) {
  return std::make_unique<BucketKernel>(p);
}

}  // namespace

const CpuKernel all_reduce_bucket{.prepare = prepare};

}  // namespace sextant::cpu
