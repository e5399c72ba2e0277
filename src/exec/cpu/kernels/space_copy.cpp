#include <cstring>

#include "base/error.h"
#include "base/units.h"
#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"
#include "exec/nvme_file.h"

namespace sextant::cpu {

namespace {

// Both spaces are memory of the host, in two arenas.
void run_space_copy(const KernelCall& call) {
  const int64_t width = size_of(call.out[0].dtype);
  auto* to = static_cast<std::byte*>(call.out[0].data);
  const auto* from = static_cast<const std::byte*>(call.in[0].data);
  for_blocks(call.team, call.out[0].count(), kElementsPerTask, [&](int64_t begin, int64_t end) {
    std::memcpy(to + begin * width, from + begin * width, static_cast<size_t>((end - begin) * width));
  });
}

// To or from the file. Both buffers are whole blocks, which are moved as they are.
class FileCopy final : public PreparedKernel {
 public:
  explicit FileCopy(const Preparation& p) : file_(*p.file) {
    const Value &from = p.program[p.op.inputs[0]], &to = p.program[p.op.outputs[0]];
    reads_ = from.space == MemorySpace::nvme;
    const Buffer& in_file = p.program.buffers[static_cast<size_t>((reads_ ? from : to).buffer)];
    const Buffer& in_memory = p.program.buffers[static_cast<size_t>((reads_ ? to : from).buffer)];
    BUG_IF(in_file.slots > 1 || in_memory.bytes < in_file.bytes, "{}: buffers that do not fit together", p.op.path);
    offset_ = in_file.offset;
    bytes_ = static_cast<size_t>(in_file.bytes);
  }

  void run(const KernelCall& call) override {
    if (reads_)
      file_.read({call.out[0].as<std::byte>(), bytes_}, offset_);
    else
      file_.write({call.in[0].as<const std::byte>(), bytes_}, offset_);
  }

 private:
  NvmeFile& file_;
  bool reads_;
  int64_t offset_ = 0;
  size_t bytes_ = 0;
};

std::unique_ptr<PreparedKernel> prepare_space_copy(const Preparation& p) {
  if (!is_file_copy(p.program, p.op)) return nullptr;
  BUG_IF(!p.file, "{} has no file", p.op.path);
  return std::make_unique<FileCopy>(p);
}

}  // namespace

const CpuKernel space_copy{.run = run_space_copy, .prepare = prepare_space_copy};

}  // namespace sextant::cpu
