// Issuing a step on the GPU takes no memory of ours, on host or device, and waits for nothing: operator new, cudaMalloc
// and its kin, and every call that waits are counted while one runs (the driver's own malloc is its business).
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "exec/cuda/runtime/cuda_executor.h"
#include "models/model.h"
#include "passes/lower.h"

namespace {

thread_local bool armed = false;
int allocations = 0, device_allocations = 0, waits = 0;

void count(int& kind) {
  kind += armed ? 1 : 0;
}

}  // namespace

// Not inlined: where only one of the pair is, GCC sees free() on what operator new gave, and warns.
[[gnu::noinline]] void* operator new(size_t size) {
  count(allocations);
  if (void* at = std::malloc(size)) return at;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* at) noexcept {
  std::free(at);
}
[[gnu::noinline]] void operator delete(void* at, size_t) noexcept {
  std::free(at);
}

// The linker sends the calls of this program here (tests/CMakeLists.txt).
extern "C" {
#define COUNTED(kind, name, parameters, arguments) \
  cudaError_t __real_##name parameters;            \
  cudaError_t __wrap_##name parameters {           \
    count(kind);                                   \
    return __real_##name arguments;                \
  }
COUNTED(device_allocations, cudaMalloc, (void** at, size_t n), (at, n))
COUNTED(device_allocations, cudaMallocHost, (void** at, size_t n), (at, n))
COUNTED(device_allocations, cudaMallocAsync, (void** at, size_t n, cudaStream_t s), (at, n, s))
COUNTED(waits, cudaStreamSynchronize, (cudaStream_t s), (s))
COUNTED(waits, cudaEventSynchronize, (cudaEvent_t e), (e))
COUNTED(waits, cudaDeviceSynchronize, (void), ())
#undef COUNTED
}

namespace sextant {
namespace {

TEST(CudaAllocation, TheTrapCounts) {
  armed = true;
  auto grows = std::make_unique<int>(3);
  cudaDeviceSynchronize();
  armed = false;
  EXPECT_GE(allocations, 1);
  EXPECT_GE(waits, 1);
  EXPECT_EQ(*grows, 3);
}

TEST(CudaAllocation, NoneDuringAStep) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no CUDA device";
  for (const char* architecture : {"gpt2", "llama"}) {
    ModelSpec spec{.architecture = architecture,
                   .layers = 2,
                   .hidden = 64,
                   .heads = 4,
                   .kv_heads = 4,
                   .head_dim = 16,
                   .ffn = 128,
                   .vocab = 300,
                   .max_seq = 80,
                   .tied_head = true};
    auto executor = make_cuda_executor({});
    LowerOptions options{.train = Optimizer{}};
    options.plan = {.microbatches = 3};
    Program program = lower(build_model(spec, {.batch = 2, .seq = 80, .dtype = DType::bf16}, single_rank_mesh()),
                            executor->target(), options);
    auto arena = executor->allocate(program.arena_bytes);
    auto bound = executor->bind(program, *arena);
    const Value &tokens = program.at("tokens"), &norm = program.at("grad_norm");
    std::vector<int32_t> ids(160, 7);
    auto step = [&] {
      for (const Action& action : program.schedule) {
        bound->write(tokens, std::as_bytes(std::span(ids)), 0, action.microbatch);
        bound->run(action);
      }
      return bound->fetch(norm);
    };
    bound->collect(step());  // captures the graphs
    int64_t ticket = 0;
    allocations = device_allocations = waits = 0;
    armed = true;
    ticket = step();
    armed = false;
    EXPECT_EQ(allocations, 0) << architecture;
    EXPECT_EQ(device_allocations, 0) << architecture;
    EXPECT_EQ(waits, 0) << architecture;
    bound->collect(ticket);
  }
}

}  // namespace
}  // namespace sextant
