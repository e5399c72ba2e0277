// No executor allocates during a step: malloc is counted while one runs.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>

#include "exec/cpu/cpu_executor.h"
#include "models/model.h"
#include "passes/lower.h"

namespace {

std::atomic<bool> armed{false};
std::atomic<int> allocations{0};

void count_allocation() {
  if (armed.load(std::memory_order_relaxed)) allocations.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// The sanitizers own malloc; they offer a hook instead.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void*, size_t),
                                                         void (*free_hook)(const volatile void*));
namespace {
const int kInstalled = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, size_t) { count_allocation(); }, [](const volatile void*) {});
}
#else
extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier): glibc's own names
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* at, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
// NOLINTEND(bugprone-reserved-identifier)

void* malloc(size_t size) {
  return count_allocation(), __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  return count_allocation(), __libc_calloc(count, size);
}
void* realloc(void* at, size_t size) {
  return count_allocation(), __libc_realloc(at, size);
}
void* memalign(size_t alignment, size_t size) {
  return count_allocation(), __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  return count_allocation(), __libc_memalign(alignment, size);
}
}
#endif

namespace sextant {
namespace {

TEST(Allocation, TheTrapCounts) {
  armed = true;
  std::vector<int> grows(1000);
  armed = false;
  EXPECT_GE(allocations.exchange(0), 1);
  EXPECT_EQ(grows[0], 0);
}

TEST(Allocation, NoneDuringAStep) {
  for (const char* architecture : {"gpt2", "llama"}) {
    for (RecomputeMode mode : {RecomputeMode::none, RecomputeMode::selective, RecomputeMode::full}) {
      ModelSpec spec{.architecture = architecture,
                     .layers = 2,
                     .hidden = 48,
                     .heads = 4,
                     .kv_heads = 4,
                     .head_dim = 12,
                     .ffn = 96,
                     .vocab = 300,
                     .max_seq = 80,
                     .tied_head = true};
      auto executor = make_cpu_executor(2);
      LowerOptions options{.train = Optimizer{}};
      options.plan = {.recompute = mode, .microbatches = 2};
      Program program =
          lower(build_model(spec, {.batch = 2, .seq = 80}, single_rank_mesh()), executor->target(), options);
      auto arena = executor->allocate(program.arena_bytes);
      auto bound = executor->bind(program, *arena);
      run_schedule(*bound);  // the BLAS library maps its buffers on the first call
      allocations = 0;
      armed = true;
      run_schedule(*bound);
      armed = false;
      EXPECT_EQ(allocations.load(), 0) << architecture << ", recompute " << static_cast<int>(mode);
    }
  }
}

}  // namespace
}  // namespace sextant
