// In a file of its own: where the compiler sees these definitions it warns of malloc and new being mixed.
#include "comm/allocation_count.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int> allocations{0};

}  // namespace

void* operator new(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* at = std::malloc(size == 0 ? 1 : size)) return at;
  throw std::bad_alloc();
}
void operator delete(void* at) noexcept {
  std::free(at);
}
void operator delete(void* at, size_t) noexcept {
  std::free(at);
}

namespace sextant {

int allocation_count() {
  return allocations.load();
}

}  // namespace sextant
