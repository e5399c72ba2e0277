#include <cstring>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"

namespace sextant::cpu {

namespace {

void run_duplicate(const KernelCall& call) {
  int64_t bytes = call.in[0].count() * size_of(call.in[0].dtype);
  for_blocks(call.team, bytes, kElementsPerTask * size_of(call.in[0].dtype), [&](int64_t begin, int64_t end) {
    std::memcpy(call.out[0].as<std::byte>() + begin, call.in[0].as<std::byte>() + begin,
                static_cast<size_t>(end - begin));
  });
}

}  // namespace

const CpuKernel duplicate{.run = run_duplicate};

}  // namespace sextant::cpu
