#include <cstring>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"

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

}  // namespace

const CpuKernel space_copy{.run = run_space_copy};

}  // namespace sextant::cpu
